"""The core of ultrascale: what AWS documents, what the user decided, and what follows from both."""
