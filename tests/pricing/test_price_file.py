"""Price files of users: read whole, or refused with every mistake."""

import json
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.support.price_list import HEADER, P5, product
from ultrascale.catalog.prices import COLUMNS, catalog_prices
from ultrascale.errors import ConfigError
from ultrascale.pricing.price_file import PriceFile, as_csv, read_price_file

TODAY = date(2026, 11, 22)


def read(folder: Path, *rows: str, header: str = HEADER) -> PriceFile:
    file = folder / "prices.csv"
    file.write_text("\n".join([header, *rows]) + "\n")
    return read_price_file(file, TODAY)


def refused(folder: Path, *rows: str, header: str = HEADER) -> list[str]:
    """Return the mistakes of a file, without its path."""
    with pytest.raises(ConfigError) as refusal:
        read(folder, *rows, header=header)
    place = f"{folder / 'prices.csv'}:"
    return [line.removeprefix(place).strip() for line in refusal.value.mistakes]


def test_a_price_is_read_with_its_day_and_source(tmp_path: Path) -> None:
    found = read(tmp_path, P5)

    price = found.prices.find("us-east-1", "ec2", "p5.48xlarge")
    assert price is not None
    assert (price.price, price.valid_on, price.source) == (31.5, date(2026, 11, 1), "contract 17")
    assert found.warnings == ()


def test_the_class_of_a_database_is_an_item_with_its_near_names(tmp_path: Path) -> None:
    row = "us-east-1,rds,db.m6g.large,hour,0.159,USD,2026-11-01,contract"

    (price,) = read(tmp_path, row).prices
    (wrong,) = refused(tmp_path, row.replace("m6g.large", "m6g.lage"))

    assert (price.item, price.unit) == ("db.m6g.large", "hour")
    assert wrong.endswith("got 'db.m6g.lage'; did you mean db.m6g.large?")


def test_a_fee_that_was_paid_does_not_age_and_is_whole_cents(tmp_path: Path) -> None:
    row = "us-east-1,ec2-capacity-block,cr-0123456789abcdef0,fee,412345.60,USD,2024-11-01,invoice"

    found = read(tmp_path, row)

    (price,) = found.prices
    assert (price.unit, price.price, found.warnings) == ("fee", 412345.6, ())
    (unit,) = refused(tmp_path, row.replace(",fee,", ",hour,"))
    assert unit.endswith("write fee")
    (cents,) = refused(tmp_path, row.replace("345.60", "345.605"))
    assert "no fee in whole cents" in cents


def test_columns_may_come_in_any_order_and_from_a_spreadsheet(tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    columns: list[str] = [*reversed(COLUMNS)]
    cells: dict[str, str] = dict(zip(COLUMNS, P5.split(","), strict=True))
    rows = [",".join(columns), "", ",".join(f'" {cells[name]} "' for name in columns)]
    file.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(rows).encode())

    found = read_price_file(file, TODAY)

    assert [price.price for price in found.prices] == [31.5]


def test_all_mistakes_come_at_once_each_with_line_value_and_what_to_do(tmp_path: Path) -> None:
    lines = refused(
        tmp_path,
        "us-est-1,ec2,p5.48xlarge,hour,31.5,USD,2026-11-01,c",
        "us-east-1,ec2,p5.48xlrge,hour,31.5,USD,2026-11-01,c",
        "us-east-1,vpc,nat-gatway,hour,0.04,USD,2026-11-01,c",
        "us-east-1,ec3,p5.48xlarge,hour,1,USD,2026-11-01,c",
        "us-east-1,ec2,p5.48xlarge,month,1,USD,2026-11-01,c",
        "us-east-1,ec2,p5.48xlarge,hour,-1,USD,2026-11-01,c",
        "us-east-1,ec2,p5.4xlarge,hour,NaN,USD,2026-11-01,c",
        "us-east-1,ec2,p4d.24xlarge,hour,1,EUR,2026-11-01,c",
        "us-east-1,ec2,p4de.24xlarge,hour,1,,2026-11-01,c",
        "us-east-1,ec2,p5en.48xlarge,hour,1,USD,,c",
        "us-east-1,ec2,p5en.48xlarge,hour,1,USD,01.11.2026,c",
        "us-east-1,ec2,trn1.32xlarge,hour,1,USD,2026-11-01,",
        "us-east-1,sagemaker,p5.48xlarge,hour,1,USD,2026-11-01,c",
        "us-east-1,ec2",
        "us-east-1,ec2,trn2.48xlarge,hour,0,USD,2026-11-01,c",
    )

    assert [line.split(":")[0] for line in lines[:-1]] == [str(row) for row in range(2, 17)]
    told = "\n".join(lines)
    for words in (
        "region: no such Region, got 'us-est-1'; did you mean us-",
        "item: unknown instance type, got 'p5.48xlrge'; did you mean p5.48xlarge?",
        "item: vpc has no such item, got 'nat-gatway'; did you mean nat-gateway?",
        "service: no such service, got 'ec3'; did you mean ec",
        "unit: not that of the item, got 'month'; write hour",
        "price: not a price, got '-1'; write a number of 0 or more, such as 55.04",
        "price: not a price, got 'NaN'; write a number",
        "currency: not in US dollars, got 'EUR'; write USD",
        "currency: not in US dollars, got ''; write USD",
        "valid_on: not a day, got ''; write a day",
        "valid_on: not a day, got '01.11.2026'; write a day",
        "source: nothing says who states the price, got ''",
        "item: no type of SageMaker, got 'p5.48xlarge'; write it with ml. before it",
        "price: no instance costs nothing, got '0'; leave the row out",
        "15:1: 2 columns, where the header has 8",
        "prices in EUR, USD; write all of them in USD",
    ):
        assert words in told


def test_an_item_that_stands_twice_is_refused_with_both_lines(tmp_path: Path) -> None:
    (line,) = refused(tmp_path, P5, P5.replace("31.5", "30"))

    assert line == (
        "3:1: the price of line 2 again, got 'us-east-1 ec2 p5.48xlarge'; leave one of them out"
    )


def test_a_wrong_header_is_refused_with_the_right_one(tmp_path: Path) -> None:
    (line,) = refused(tmp_path, P5, header="region,instance_type,price,price")

    assert line.startswith("1:1: the header lacks 'service', 'item', ")
    assert "has unknown 'instance_type'; repeats 'price'; it is region,service,item," in line


def test_the_age_of_prices_is_told_and_refused_after_a_year(tmp_path: Path) -> None:
    def of(day: date) -> str:
        return P5.replace("2026-11-01", str(day))

    assert read(tmp_path, of(TODAY - timedelta(days=90))).warnings == ()
    (warning,) = read(tmp_path, of(TODAY - timedelta(days=91))).warnings
    assert "1 of 1 prices are older than 90 days, the oldest 91 days, of 2026-08-23" in warning
    assert "`ultrascale prices`" in warning
    (line,) = refused(tmp_path, of(TODAY - timedelta(days=366)))
    assert line.startswith("2:1: valid_on: 366 days old, of at most 365, got '2025-11-21'")
    (line,) = refused(tmp_path, of(TODAY + timedelta(days=2)))
    assert line.startswith("2:1: valid_on: after today, 2026-11-22, got '2026-11-24'")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "price"),
        (b"", "price"),
        (b"region\xff", "price"),
        (HEADER.encode(), "it has no row"),
        (b'region,"service', "it is no CSV"),
        (b"{", "it is no JSON"),
        (b"{}", "price"),
    ],
    ids=["absent", "empty", "latin-1", "header-alone", "open-quote", "open-brace", "no-prices"],
)
def test_a_file_that_is_no_price_list_is_refused(
    content: bytes | None, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "prices.csv"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ConfigError, match=words):
        read_price_file(file, TODAY)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="it is a directory; name the file in it"):
        read_price_file(tmp_path, TODAY)


def test_an_answer_of_the_price_list_api_is_read_as_it_comes(tmp_path: Path) -> None:
    """As `aws pricing get-products` writes it, and as AWS publishes a whole Region."""
    file = tmp_path / "prices.json"
    one = product("p5.48xlarge", "55.0400000000")
    file.write_text(json.dumps({"FormatVersion": "aws_v1", "PriceList": [json.dumps(one)]}))
    bulk = tmp_path / "bulk.json"
    bulk.write_text(
        json.dumps(
            {
                "offerCode": "AmazonEC2",
                "publicationDate": "2026-11-20T10:00:00Z",
                "products": {"SKU": one["product"]},
                "terms": {"OnDemand": {"SKU": one["terms"]["OnDemand"]}},
            }
        )
    )

    for each in (file, bulk):
        (price,) = read_price_file(each, TODAY).prices
        assert (price.item, price.price, price.unit) == ("p5.48xlarge", 55.04, "hour")
        assert price.valid_on == date(2026, 11, 20)


@pytest.mark.parametrize("turned", [False, True])
def test_of_several_products_of_an_item_the_highest_goes_in_any_order(
    turned: bool, tmp_path: Path
) -> None:
    """AWS lists types at 0 that it sells in blocks alone: a plan would call them free."""
    products = [
        product("p5.48xlarge", "55.04"),
        product("p5.48xlarge", "60"),
        product("p5.48xlarge", "0.0000000000"),
        product("trn2.48xlarge", "0.0000000000"),
        product("NatGateway-Hours", "0"),
    ]
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"PriceList": products[::-1] if turned else products}))

    found = {price.item: price.price for price in read_price_file(file, TODAY).prices}

    assert found == {"p5.48xlarge": 60, "nat-gateway": 0}


def test_a_written_list_is_read_again(tmp_path: Path) -> None:
    prices = [each for each in catalog_prices() if each.region == "us-gov-west-1"]
    file = tmp_path / "prices.csv"
    file.write_text(as_csv(prices))

    assert [*read_price_file(file, TODAY).prices] == prices


def test_the_catalog_holds_to_the_rules_of_a_users_file(tmp_path: Path) -> None:
    """But for the age of its oldest prices, which the plan says."""
    file = tmp_path / "prices.csv"
    file.write_text(as_csv(catalog_prices()))

    with pytest.raises(ConfigError) as refusal:
        read_price_file(file, TODAY)

    assert all("days old, of at most 365" in line for line in refusal.value.mistakes)
