"""Code that runs in AWS Lambda: the standard library and the runtime's boto3, nothing of ours.

One asset holds it all as the package `lambdas`, so modules import each other relatively.
"""
