"""Custom resource that runs a build of AWS CodeBuild."""
