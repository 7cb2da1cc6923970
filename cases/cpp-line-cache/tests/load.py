"""Fills the store with the table and the objects of the tests, and makes it check signatures.

    load.py ENDPOINT OUT

Writes OUT/credentials. Can be run again: the store then has a fresh key.
"""

import array
import json
import pathlib
import random
import sys
import urllib.request

import boto3

GROUPS, ROWS = 24, 32 * 1024
LINE = 8 << 20


def check_signatures(endpoint: str, after: str) -> None:
    """The store takes so many more requests without looking who asks."""
    request = urllib.request.Request(
        endpoint + "/moto-api/reset-auth",
        data=after.encode(),
        headers={"Content-Type": "text/plain"},
        method="POST",
    )
    urllib.request.urlopen(request).read()


def a_reader(connect) -> tuple[str, str]:
    """A user that may use the store, with its key and secret."""
    iam = connect("iam")
    allowed = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    try:
        iam.create_user(UserName="reader")
    except iam.exceptions.EntityAlreadyExistsException:
        pass
    iam.put_user_policy(UserName="reader", PolicyName="all", PolicyDocument=policy)
    key = iam.create_access_key(UserName="reader")["AccessKey"]
    return key["AccessKeyId"], key["SecretAccessKey"]


def table(name: str, groups: int, rows: int):
    """The pieces of a table, and last the list of them."""
    made = random.Random(6)
    listed = []
    for group in range(groups):
        columns = {
            "day": array.array("I", (made.randrange(365) for _ in range(rows))),
            "region": array.array("I", (made.randrange(8) for _ in range(rows))),
            "quantity": array.array("I", (made.randrange(1, 20) for _ in range(rows))),
            "price": array.array("q", (made.randrange(99, 100_000) for _ in range(rows))),
        }
        for column, values in columns.items():
            body = values.tobytes()
            listed.append(f"{group} {column} {len(body)}\n")
            yield f"{name}/{group}/{column}", body
    yield f"{name}/columns", "".join(listed).encode()


def main() -> None:
    endpoint, out = sys.argv[1], pathlib.Path(sys.argv[2])
    check_signatures(endpoint, "1000000000")

    def connect(service):
        return boto3.client(
            service,
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="setup",
            aws_secret_access_key="setup",
        )

    key, secret = a_reader(connect)
    store = connect("s3")
    store.create_bucket(Bucket="lines")
    # A table of one group beside the whole: for a recording that is kept.
    for name, body in [*table("orders", GROUPS, ROWS), *table("short", 1, ROWS)]:
        store.put_object(Bucket="lines", Key=name, Body=body)
    numbers = array.array("Q", range((2 * LINE + LINE // 2) // 8)).tobytes()
    store.put_object(Bucket="lines", Key="numbers", Body=numbers)
    store.put_object(Bucket="lines", Key="a name with + and ü", Body=numbers[:1000])
    store.put_object(Bucket="lines", Key="empty", Body=b"")
    check_signatures(endpoint, "0")
    (out / "credentials").write_text(f"{key}:{secret}\n")


main()
