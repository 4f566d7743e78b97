"""Price lists: rows of a user's file, and products as AWS's Price List API writes them."""

from typing import Any

HEADER = "region,service,item,unit,price,currency,valid_on,source"
P5 = "us-east-1,ec2,p5.48xlarge,hour,31.5,USD,2026-11-01,contract 17"


def product(
    name: str, usd: str, *, service: str = "AmazonEC2", unit: str = "Hrs", **attributes: str
) -> dict[str, Any]:
    """Return a product of the Price List: an instance of EC2, or what ``attributes`` say.

    Args:
        name: Type of the instance; the usage, of another service.
        usd: Price of a unit.
        service: Code of the service.
        unit: Unit, as AWS calls it.
        attributes: Attributes beside the usual ones.
    """
    usual = {"regionCode": "us-east-1", "servicecode": service, "usagetype": name}
    if service == "AmazonEC2" and "." in name and ":" not in name:
        usual |= {
            "usagetype": f"BoxUsage:{name}",
            "instanceType": name,
            "operatingSystem": "Linux",
            "tenancy": "Shared",
            "preInstalledSw": "NA",
            "capacitystatus": "Used",
            "marketoption": "OnDemand",
        }
    dimension = {"unit": unit, "beginRange": "0", "endRange": "Inf", "pricePerUnit": {"USD": usd}}
    terms = {"OnDemand": {"SKU.TERM": {"priceDimensions": {"SKU.TERM.RATE": dimension}}}}
    return {
        "serviceCode": service,
        "publicationDate": "2026-11-20T10:00:00Z",
        "product": {"sku": "SKU", "attributes": {**usual, **attributes}},
        "terms": terms,
    }
