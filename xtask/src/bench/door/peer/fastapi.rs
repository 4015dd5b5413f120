//! FastAPI and PostgreSQL, on uvicorn with two workers.

use anyhow::Result;

use super::super::served::{Balances, Program, SUCCEEDED, Served, free_address};
use super::super::subject::Place;
use super::{installed, python, source};
use crate::bench::delivery::Delivery;

const NAME: &str = "fastapi";

pub(super) fn install() -> Result<()> {
    python(&installed(NAME)?, &source(NAME).join("requirements.txt"))
}

pub(super) fn serve(place: &Place<'_>, url: &str) -> Result<Served> {
    let address = free_address()?;
    let mut program = Program::new(&installed(NAME)?.join("venv/bin/uvicorn"), &place.folder, NAME);
    let command = program.command();
    command.args(["app:app", "--workers", "2", "--no-access-log", "--log-level", "warning"]);
    command.args(["--host", "127.0.0.1", "--port", &address.port().to_string()]);
    command.env("DATABASE_URL", url).env("PYTHONDONTWRITEBYTECODE", "1").current_dir(source(NAME));
    let mut served = Served {
        programs: vec![program],
        stores: Vec::new(),
        address,
        health: (address, "/health"),
        delivery: Delivery::transfer(address, "/transfers", "")?,
        status: SUCCEEDED,
        balances: Balances::Rows { url: url.to_owned(), table: "accounts" },
        next: 0,
    };
    served.start()?;
    Ok(served)
}
