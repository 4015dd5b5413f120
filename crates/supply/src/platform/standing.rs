//! Where a supplier stands (sections 5.1, 12): staff suspend it, which takes its writes and its payouts, and let it go
//! on; they open and close risk cases, which hold back its money. All with a reason. The caller's tenant is the
//! supplier's.

use door::{Failure, Steps};
use kernel::Time;
use serde::Serialize;
use serde_json::{Value as Json, json};
use store::{Error, Query, Row, Write, values};

use crate::action::{Action, Change, Context, Event, Refusal, Stop};
use crate::caller::Object;
use crate::code::Code;
use crate::exact::Stamp;
use crate::rows::{Reader, Supplier, SupplierStatus};

const STAND: &str = "update supply_suppliers
set status = $1, open_risk_cases = $2, version = version + 1, request_id = $3, audit_trace_id = $4, updated_at = $5
where id = $6 and tenant_id = $7 and version = $8";
/// What the column holds.
const CASES_MOST: i64 = 2_147_483_647;

/// What is done to a supplier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// It may not write.
    Suspend,
    /// It may again.
    Resume,
    /// One more risk case.
    OpenCase,
    /// One less.
    CloseCase,
}

/// `POST /api/v1/platform/suppliers/{id}/suspend`, `/resume`, `/risk-cases`, `/risk-cases/close`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stand {
    /// Row of `supply_suppliers`.
    pub supplier_id: i64,
    /// What is done.
    pub measure: Measure,
    /// Why; in the audit only.
    pub reason: String,
}

/// What it decides from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    supplier: Supplier,
    version: i64,
}

#[derive(Debug, Serialize)]
struct Standing {
    supplier_id: i64,
    tenant_id: i64,
    user_id: i64,
    status: &'static str,
    open_risk_cases: i64,
    version: i64,
    updated_at: Stamp,
}

impl State {
    fn json(&self) -> Json {
        let Self { supplier, version } = self;
        json!({ "status": supplier.status.as_str(), "version": version, "open_risk_cases": supplier.open_risk_cases })
    }

    fn conflict(&self) -> Refusal {
        let supplier = &self.supplier;
        let refusal = Refusal::of(Code::ComState).with("supplier_status", supplier.status.as_str());
        let refusal = refusal.with("open_risk_cases", supplier.open_risk_cases);
        refusal.about(Object::row(Supplier::KIND, supplier.user_id), self.json())
    }
}

impl Measure {
    /// Audit event, and what the outbox tells.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Suspend => ("platform.supplier.suspend", "supply.supplier.suspend.succeeded"),
            Self::Resume => ("platform.supplier.resume", "supply.supplier.resume.succeeded"),
            Self::OpenCase => ("platform.supplier.risk_case.open", "supply.supplier.risk_open.succeeded"),
            Self::CloseCase => ("platform.supplier.risk_case.close", "supply.supplier.risk_close.succeeded"),
        }
    }

    /// Status and open cases afterwards; `None` where it can't be done.
    const fn of(self, supplier: &Supplier) -> Option<(SupplierStatus, i64)> {
        let (status, cases) = (supplier.status, supplier.open_risk_cases);
        match (self, status) {
            (Self::Suspend, SupplierStatus::Active) => Some((SupplierStatus::Suspended, cases)),
            (Self::Resume, SupplierStatus::Suspended) => Some((SupplierStatus::Active, cases)),
            (Self::OpenCase, _) if cases < CASES_MOST => Some((status, cases + 1)),
            (Self::CloseCase, _) if cases > 0 => Some((status, cases - 1)),
            _ => None,
        }
    }
}

impl Action for Stand {
    type Prepared = ();
    type State = Option<State>;

    fn event(&self) -> &'static str {
        self.measure.names().0
    }

    fn object(&self) -> Object {
        Object { kind: Supplier::KIND, id: format!("row:{}", self.supplier_id) }
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let sql = format!(
            "select {}, s.version from supply_suppliers s where s.id = $1 and s.tenant_id = $2 {{for_update}}",
            Supplier::COLUMNS
        );
        vec![Query::new("supplier.one", sql, values![self.supplier_id, context.caller.tenant_id])]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<Self::State, Error> {
        let found = rows.first().and_then(|rows| rows.first());
        let read = |row| {
            let mut reader = Reader::new(row);
            Ok(State { supplier: Supplier::next(&mut reader)?, version: reader.int()? })
        };
        found.map(read).transpose()
    }

    fn decide(&self, context: &Context, (): &(), state: &Self::State, at: Time) -> Result<Change, Stop> {
        let state = state.as_ref().ok_or_else(|| Refusal::of(Code::ComMissing))?;
        let supplier = &state.supplier;
        let (status, open_risk_cases) = self.measure.of(supplier).ok_or_else(|| state.conflict())?;
        let version = state.version + 1;
        let caller = &context.caller;
        let row = values![
            status.as_str(),
            open_risk_cases,
            &caller.request_id,
            &caller.trace_id,
            at,
            supplier.id,
            supplier.tenant_id,
            state.version
        ];
        let data = Standing {
            supplier_id: supplier.id,
            tenant_id: supplier.tenant_id,
            user_id: supplier.user_id,
            status: status.as_str(),
            open_risk_cases,
            version,
            updated_at: Stamp(at),
        };
        let object = Object::row(Supplier::KIND, supplier.user_id);
        let is = State { supplier: Supplier { status, open_risk_cases, ..supplier.clone() }, version };
        let (before, after) = (state.json(), is.json());
        let (name, told) = (self.measure.names().1, object.clone());
        let event = Event { name, object: told, version, before: before.clone(), after: after.clone() };
        let writes = vec![Write::one("supplier.stand", STAND, row)];
        let metadata = json!({ "reason": self.reason });
        let change = Change::of(object, &data)?;
        Ok(Change { before, after, metadata, writes, events: vec![event], ..change })
    }

    fn outrun(&self, write: &'static str, state: &Self::State) -> Option<Refusal> {
        state.as_ref().filter(|_| write == "supplier.stand").map(State::conflict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SupplierStatus::{Active, Closed, Suspended};

    #[test]
    fn each_measure_by_status_and_open_cases() {
        let of = |measure: Measure, status, open_risk_cases| {
            let currency = kernel::money::Currency::CNY;
            let (id, tenant_id, user_id, phone_masked) = (1, 7, 70, String::new());
            measure.of(&Supplier { id, tenant_id, user_id, status, open_risk_cases, currency, phone_masked })
        };
        assert_eq!(of(Measure::Suspend, Active, 1), Some((Suspended, 1)));
        assert_eq!(of(Measure::Resume, Suspended, 1), Some((Active, 1)));
        for status in [Suspended, Closed] {
            assert_eq!(of(Measure::Suspend, status, 0), None);
        }
        for status in [Active, Closed] {
            assert_eq!(of(Measure::Resume, status, 0), None);
        }
        for status in [Active, Suspended, Closed] {
            assert_eq!(of(Measure::OpenCase, status, 0), Some((status, 1)));
            assert_eq!(of(Measure::CloseCase, status, 1), Some((status, 0)));
            assert_eq!(of(Measure::CloseCase, status, 0), None);
        }
        assert_eq!(of(Measure::OpenCase, Active, CASES_MOST), None);
    }
}
