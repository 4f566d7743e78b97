"""What an account has, held against what a cluster needs of it. Nothing here changes anything."""
