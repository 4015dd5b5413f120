"""A keyed transfer as an average team writes it: one transaction, insert-on-conflict."""

import hashlib
import json
import os
from contextlib import asynccontextmanager
from typing import Annotated

import asyncpg
from fastapi import FastAPI, Header, HTTPException
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field


class Transfer(BaseModel):
    account: int
    amount: int = Field(gt=0)


@asynccontextmanager
async def lifespan(app: FastAPI):
    async with asyncpg.create_pool(os.environ["DATABASE_URL"]) as pool:
        app.state.pool = pool
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/health")
async def health():
    return {"status": "up"}


@app.post("/transfers")
async def transfer(order: Transfer, idempotency_key: Annotated[str, Header(max_length=255)]):
    fingerprint = hashlib.sha256(order.model_dump_json().encode()).hexdigest()
    async with app.state.pool.acquire() as db, db.transaction():
        first = await db.fetchval(
            """insert into idempotency_keys (key, fingerprint) values ($1, $2)
               on conflict (key) do nothing returning key""",
            idempotency_key,
            fingerprint,
        )
        if first is None:
            return await stored(db, idempotency_key, fingerprint)
        status_code, response = await work(db, idempotency_key, order)
        await db.execute(
            "update idempotency_keys set status_code = $2, response = $3 where key = $1",
            idempotency_key,
            status_code,
            json.dumps(response),
        )
        return JSONResponse(response, status_code)


async def stored(db, key: str, fingerprint: str):
    row = await db.fetchrow(
        "select fingerprint, status_code, response from idempotency_keys where key = $1", key
    )
    if row["fingerprint"] != fingerprint:
        raise HTTPException(422, "the key was used with another payload")
    return JSONResponse(json.loads(row["response"]), row["status_code"])


async def work(db, key: str, order: Transfer):
    balance = await db.fetchval(
        "update accounts set balance = balance - $2 where id = $1 and balance >= $2 returning balance",
        order.account,
        order.amount,
    )
    if balance is None:
        return 402, {"status": "refused", "account": order.account, "amount": order.amount}
    number = await db.fetchval(
        "insert into transfers (key, account, amount) values ($1, $2, $3) returning id",
        key,
        order.account,
        order.amount,
    )
    return 200, {"status": "succeeded", "transfer": number, "account": order.account, "amount": order.amount}
