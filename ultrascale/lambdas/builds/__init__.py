"""The custom resource that is a build of AWS CodeBuild."""
