"""Amounts of extended resources, as Kubernetes writes them."""

# Extended resources are whole numbers, which Kubernetes may still write as 16k or 1Mi.
# Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
_SUFFIXES = {"k": 1000, "M": 1000**2, "G": 1000**3, "Ki": 1024, "Mi": 1024**2, "Gi": 1024**3}


def whole(text: str) -> int:
    """Return the whole number that a quantity stands for.

    Raises:
        ValueError: The text is no quantity of an extended resource.
    """
    digits = text.rstrip("kKMGi")
    suffix = text[len(digits) :]
    return int(digits) * (_SUFFIXES[suffix] if suffix else 1)
