"""Prices that a user brings: read from a file, or asked of AWS's Price List API."""
