"""Feature flags of aws-cdk-lib: they choose the templates, so the product carries them itself.

Every recommended flag of aws-cdk-lib 2.275.0 stands here with its recommended value, so an upgrade
of the library changes nothing by itself. An app gets them as ``App(post_cli_context=…)``, which
takes precedence over `cdk.json` and options: the templates are the same from any folder.

Source: https://github.com/aws/aws-cdk/blob/v2.275.0/packages/aws-cdk-lib/recommended-feature-flags.json
"""

from collections.abc import Mapping, Sequence

FlagValue = bool | str | Sequence[str]

_OWN: Mapping[str, FlagValue] = {
    # A stack is updated before the stacks that read its outputs, and cannot drop an output in use.
    "@aws-cdk/core:defaultCrossStackReferences": "strong",
    # Reason: the flag adds a custom resource with a function; nothing here uses the default group.
    "@aws-cdk/aws-ec2:restrictDefaultSecurityGroup": False,
    # CloudFormation's own findings are errors at synth.
    "@aws-cdk/core:validateAgainstDefaultRules": True,
}
"""Flags with values of our own, each with the reason."""

_TARGET_PARTITIONS = "@aws-cdk/core:target-partitions"
_RECOMMENDED_OFF = (
    "@aws-cdk/aws-lambda:createNewPoliciesWithAddToRolePolicy",
    "@aws-cdk/aws-s3:keepNotificationInImportedBucket",
    "@aws-cdk/custom-resources:logApiResponseDataPropertyTrueDefault",
    "@aws-cdk/customresources:installLatestAwsSdkDefault",
)
_RECOMMENDED_ON = (
    "@aws-cdk-containers/ecs-service-extensions:enableDefaultLogDriver",
    "@aws-cdk/aws-apigateway:authorizerChangeDeploymentLogicalId",
    "@aws-cdk/aws-apigateway:disableCloudWatchRole",
    "@aws-cdk/aws-apigateway:logGroupDestinationArnWithoutWildcard",
    "@aws-cdk/aws-apigateway:requestValidatorUniqueId",
    "@aws-cdk/aws-appsync:appSyncGraphQLAPIScopeLambdaPermission",
    "@aws-cdk/aws-appsync:useArnForSourceApiAssociationIdentifier",
    "@aws-cdk/aws-autoscaling:generateLaunchTemplateInsteadOfLaunchConfig",
    "@aws-cdk/aws-batch:defaultToAL2023",
    "@aws-cdk/aws-cloudfront:defaultFunctionRuntimeV2_0",
    "@aws-cdk/aws-cloudfront:defaultViewerProtocolPolicyRedirectToHttps",
    "@aws-cdk/aws-cloudwatch-actions:changeLambdaPermissionLogicalIdForLambdaAction",
    "@aws-cdk/aws-codedeploy:removeAlarmsFromDeploymentGroup",
    "@aws-cdk/aws-codepipeline-actions:useNewDefaultBranchForCodeCommitSource",
    "@aws-cdk/aws-codepipeline:crossAccountKeyAliasStackSafeResourceName",
    "@aws-cdk/aws-codepipeline:crossAccountKeysDefaultValueToFalse",
    "@aws-cdk/aws-codepipeline:defaultPipelineTypeToV2",
    "@aws-cdk/aws-dynamodb:resourcePolicyPerReplica",
    "@aws-cdk/aws-dynamodb:retainTableReplica",
    "@aws-cdk/aws-ec2:bastionHostUseAmazonLinux2023ByDefault",
    "@aws-cdk/aws-ec2:ebsDefaultGp3Volume",
    "@aws-cdk/aws-ec2:ec2SumTImeoutEnabled",
    "@aws-cdk/aws-ec2:launchTemplateDefaultUserData",
    "@aws-cdk/aws-ec2:requirePrivateSubnetsForEgressOnlyInternetGateway",
    "@aws-cdk/aws-ec2:uniqueImdsv2TemplateName",
    "@aws-cdk/aws-ecs-patterns:secGroupsDisablesImplicitOpenListener",
    "@aws-cdk/aws-ecs-patterns:uniqueTargetGroupId",
    "@aws-cdk/aws-ecs:arnFormatIncludesClusterName",
    "@aws-cdk/aws-ecs:disableExplicitDeploymentControllerForCircuitBreaker",
    "@aws-cdk/aws-ecs:reduceEc2FargateCloudWatchPermissions",
    "@aws-cdk/aws-ecs:removeDefaultDeploymentAlarm",
    "@aws-cdk/aws-ecs:removeEmptyLoadBalancers",
    "@aws-cdk/aws-efs:denyAnonymousAccess",
    "@aws-cdk/aws-efs:mountTargetOrderInsensitiveLogicalId",
    "@aws-cdk/aws-eks:defaultToAL2023",
    "@aws-cdk/aws-eks:nodegroupNameAttribute",
    "@aws-cdk/aws-eks:useNativeOidcProvider",
    "@aws-cdk/aws-elasticloadbalancingV2:albDualstackWithoutPublicIpv4SecurityGroupRulesDefault",
    "@aws-cdk/aws-elasticloadbalancingv2:networkLoadBalancerWithSecurityGroupByDefault",
    "@aws-cdk/aws-elasticloadbalancingv2:usePostQuantumTlsPolicy",
    "@aws-cdk/aws-events:eventsTargetQueueSameAccount",
    "@aws-cdk/aws-events:requireEventBusPolicySid",
    "@aws-cdk/aws-iam:importedRoleStackSafeDefaultPolicyName",
    "@aws-cdk/aws-iam:minimizePolicies",
    "@aws-cdk/aws-iam:oidcRejectUnauthorizedConnections",
    "@aws-cdk/aws-kms:aliasNameRef",
    "@aws-cdk/aws-kms:applyImportedAliasPermissionsToPrincipal",
    "@aws-cdk/aws-kms:reduceCrossAccountRegionPolicyScope",
    "@aws-cdk/aws-lambda-nodejs:sdkV3ExcludeSmithyPackages",
    "@aws-cdk/aws-lambda-nodejs:useLatestRuntimeVersion",
    "@aws-cdk/aws-lambda:recognizeLayerVersion",
    "@aws-cdk/aws-lambda:useCdkManagedLogGroup",
    "@aws-cdk/aws-opensearchservice:enableOpensearchMultiAzWithStandby",
    "@aws-cdk/aws-rds:auroraClusterChangeScopeOfInstanceParameterGroupWithEachParameters",
    "@aws-cdk/aws-rds:databaseProxyUniqueResourceName",
    "@aws-cdk/aws-rds:preventRenderingDeprecatedCredentials",
    "@aws-cdk/aws-rds:setCorrectValueForDatabaseInstanceReadReplicaInstanceResourceId",
    "@aws-cdk/aws-redshift:columnId",
    "@aws-cdk/aws-route53-patterns:useDistribution",
    "@aws-cdk/aws-route53-patters:useCertificate",
    "@aws-cdk/aws-route53-targets:userPoolDomainNameMethodWithoutCustomResource",
    "@aws-cdk/aws-s3:createDefaultLoggingPolicy",
    "@aws-cdk/aws-s3:publicAccessBlockedByDefault",
    "@aws-cdk/aws-s3:serverAccessLogsUseBucketPolicy",
    "@aws-cdk/aws-s3:setUniqueReplicationRoleName",
    "@aws-cdk/aws-secretsmanager:useAttachedSecretResourcePolicyForSecretTargetAttachments",
    "@aws-cdk/aws-signer:signingProfileNamePassedToCfn",
    "@aws-cdk/aws-sns-subscriptions:restrictSqsDescryption",
    "@aws-cdk/aws-stepfunctions-tasks:enableEmrServicePolicyV2",
    "@aws-cdk/aws-stepfunctions-tasks:fixRunEcsTaskPolicy",
    "@aws-cdk/aws-stepfunctions:useDistributedMapResultWriterV2",
    "@aws-cdk/core:annotationsInValidationReport",
    "@aws-cdk/core:aspectPrioritiesMutating",
    "@aws-cdk/core:cfnIncludeRejectComplexResourceUpdateCreatePolicyIntrinsics",
    "@aws-cdk/core:checkSecretUsage",
    "@aws-cdk/core:enableAdditionalMetadataCollection",
    "@aws-cdk/core:enablePartitionLiterals",
    "@aws-cdk/core:explicitStackTags",
    "@aws-cdk/core:includePrefixInUniqueNameGeneration",
    "@aws-cdk/core:validateSnapshotRemovalPolicy",
    "@aws-cdk/s3-notifications:addS3TrustKeyPolicyForSnsSubscriptions",
)

FLAGS: Mapping[str, FlagValue] = {
    **dict.fromkeys(_RECOMMENDED_ON, True),
    **dict.fromkeys(_RECOMMENDED_OFF, False),
    _TARGET_PARTITIONS: ["aws", "aws-cn"],  # jsii takes no tuple
    **_OWN,
}
"""The flags of every app of the product, by name."""
