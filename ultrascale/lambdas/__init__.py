"""Functions of AWS Lambda: they may use only the standard library and the runtime's boto3.

One asset holds all of them as the package `lambdas`, so modules import each other relatively.
"""
