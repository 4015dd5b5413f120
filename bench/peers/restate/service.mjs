// A keyed transfer on Restate, in the two ways its users have: the balance as Restate's own state, or as a row
// of a database that is debited inside a durable step.

import * as restate from "@restatedev/restate-sdk";
import pg from "pg";

// The balance that a row of accounts.sql begins with.
const OPENING = 1_000_000_000;

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 20 });

const account = restate.object({
  name: "Account",
  handlers: {
    transfer: async (ctx, { amount }) => {
      const balance = (await ctx.get("balance")) ?? OPENING;
      if (balance < amount) {
        throw new restate.TerminalError("the balance is too low", { errorCode: 402 });
      }
      ctx.set("balance", balance - amount);
      return { status: "succeeded", account: ctx.key, amount };
    },
  },
});

async function debit(key, account, amount) {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const debited = await client.query(
      "update accounts set balance = balance - $2 where id = $1 and balance >= $2",
      [account, amount],
    );
    if (debited.rowCount === 0) {
      await client.query("rollback");
      return null;
    }
    const inserted = await client.query(
      "insert into transfers (key, account, amount) values ($1, $2, $3) returning id",
      [key, account, amount],
    );
    await client.query("commit");
    return inserted.rows[0].id;
  } catch (cause) {
    await client.query("rollback").catch(() => {});
    throw cause;
  } finally {
    client.release();
  }
}

const transfers = restate.service({
  name: "Transfers",
  handlers: {
    transfer: async (ctx, { account, amount }) => {
      const key = ctx.request().headers.get("idempotency-key") ?? "";
      const transfer = await ctx.run("debit", () => debit(key, account, amount));
      if (transfer === null) {
        throw new restate.TerminalError("the balance is too low", { errorCode: 402 });
      }
      return { status: "succeeded", transfer, account, amount };
    },
  },
});

restate.serve({ services: [account, transfers], port: Number(process.env.PORT ?? 9080) });
