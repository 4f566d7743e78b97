"""A user's prices: read from a file, or fetched from AWS's Price List API."""
