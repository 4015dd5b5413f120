//! Sets the protected prices of a model (sections 4, 8.5): by staff, a new row for each direction from an instant
//! on; what was in force stays on record. A floor is given, or follows from an official price.

use custody::Provider;
use door::{Failure, Steps};
use kernel::Time;
use kernel::money::{Price, Rate};
use serde::Serialize;
use serde_json::{Value as Json, json};
use store::{Error, Query, Row, Value, Write, values};

use crate::action::{Action, Change, Context, Event, Refusal, Stop};
use crate::caller::{Object, PLATFORM};
use crate::code::Code;
use crate::exact::{Exact, Stamp};
use crate::packages::fields::field;
use crate::packages::floor::{self, Floor, in_force};

const OF_MODEL: &str = "where f.provider = $1 and f.model = $2 and f.currency_code = $3";

const INSERT: &str = "insert into supply_price_protection (tenant_id, provider, model, direction, floor_price, currency_code, effective_from, request_id, created_at, created_by)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

/// Longest name of a model, in characters.
const MODEL_MOST: usize = 100;
const KIND: &str = "supply_price_protection";

/// What a floor follows from, in major units per 1,000,000 tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The provider's own price: the floor is `protected_price_ratio` of it, rounded up.
    Official(Price),
    /// The floor itself.
    Floor(Price),
}

impl Basis {
    /// Reads one of two texts, of the fields `official_` and `floor_` with the direction's `name`.
    ///
    /// # Errors
    /// `SUP_COM_4001` when none or both are given, or the text is no price.
    pub fn parse(name: &str, official: Option<&str>, floor: Option<&str>) -> Result<Self, Refusal> {
        let price = |text, kind: &str, of: fn(Price) -> Self| {
            Price::parse(text).map(of).map_err(|malformed| field(format!("{kind}_{name}"), malformed.rule()))
        };
        match (official, floor) {
            (Some(text), None) => price(text, "official", Self::Official),
            (None, Some(text)) => price(text, "floor", Self::Floor),
            (None, None) => Err(field(format!("floor_{name}"), "required")),
            (Some(_), Some(_)) => Err(field(format!("floor_{name}"), "one_of_two")),
        }
    }

    /// The first word of its field.
    const fn kind(self) -> &'static str {
        match self {
            Self::Official(_) => "official",
            Self::Floor(_) => "floor",
        }
    }

    fn floor(self, ratio: Rate) -> Price {
        match self {
            Self::Official(official) => official.protected(ratio),
            Self::Floor(floor) => floor,
        }
    }
}

/// `PUT /api/v1/platform/price-protection`: both directions, since a model with one floor is not on the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectPrice {
    /// Provider.
    pub provider: String,
    /// Model.
    pub model: String,
    /// Of input tokens.
    pub input: Basis,
    /// Of output tokens.
    pub output: Basis,
    /// From when on; at once where nothing is said.
    pub effective_from: Option<Time>,
}

/// What is in force, and what is to come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    floors: Vec<Floor>,
}

/// `data` of the answer.
#[derive(Debug, Serialize)]
struct Protected<'a> {
    provider: &'a str,
    model: &'a str,
    floor_price_per_1m_input: Exact,
    floor_price_per_1m_output: Exact,
    currency_code: &'static str,
    effective_from: Stamp,
}

impl ProtectPrice {
    fn checked(&self, at: Time) -> Result<Time, Refusal> {
        if Provider::parse(&self.provider).is_none() {
            return Err(field("provider", "provider"));
        }
        if self.model.is_empty() || self.model.chars().count() > MODEL_MOST {
            return Err(field("model", "length"));
        }
        if self.model.chars().any(char::is_control) || self.model.trim() != self.model {
            return Err(field("model", "characters"));
        }
        let from = self.effective_from.unwrap_or(at);
        // What was allowed yesterday stays allowed yesterday.
        if from < at { Err(field("effective_from", "past")) } else { Ok(from) }
    }

    /// The floors by direction.
    fn floors(&self, ratio: Rate) -> Result<[(&'static str, Price); 2], Refusal> {
        let floor = |direction, basis: Basis| match basis.floor(ratio) {
            floor if floor.count() == 0 => Err(field(format!("{}_{direction}", basis.kind()), "positive")),
            floor => Ok((direction, floor)),
        };
        Ok([floor("input", self.input)?, floor("output", self.output)?])
    }
}

/// What audit and outbox say: the floors, as texts. They have no version; the row of an instant never changes.
fn told(status: &'static str, floors: [Option<Price>; 2], from: Option<Time>) -> Json {
    let [input, output] = floors.map(|floor| floor.map(Price::text));
    let from = from.map(Time::to_rfc3339_millis);
    json!({ "status": status, "version": 0, "input": input, "output": output, "effective_from": from })
}

impl Action for ProtectPrice {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.price_protection.set"
    }

    fn object(&self) -> Object {
        Object { kind: KIND, id: format!("{}/{}", self.provider, self.model) }
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let currency = context.house.policy.currency.code();
        vec![Query::new("floors", floor::select(OF_MODEL), values![&self.provider, &self.model, currency])]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        Ok(State { floors: rows.iter().flatten().map(Floor::read).collect::<Result<_, _>>()? })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        let caller = &context.caller;
        if !caller.is_platform() {
            return Err(Refusal::of(Code::ComMissing).into());
        }
        let policy = &context.house.policy;
        let from = self.checked(at)?;
        let floors @ [(_, input), (_, output)] = self.floors(policy.protected_price_ratio)?;
        let writes = floors.map(|(direction, floor)| {
            let row = [
                values![PLATFORM, &self.provider, &self.model, direction],
                vec![Value::Money(floor.count())],
                values![policy.currency.code(), from, &caller.request_id, at, caller.operator_id],
            ];
            Write::one("floor.insert", INSERT, row.concat())
        });
        let object = self.object();
        let old = ["input", "output"].map(|direction| in_force(&state.floors, direction, at));
        let before = if old == [None, None] { json!({}) } else { told("in_force", old, None) };
        let after = told("set", [Some(input), Some(output)], Some(from));
        let (name, version) = ("supply.package.floor_set.succeeded", 0);
        let event =
            Event { name, object: object.clone(), version, before: before.clone(), after: after.clone() };
        let data = Protected {
            provider: &self.provider,
            model: &self.model,
            floor_price_per_1m_input: input.into(),
            floor_price_per_1m_output: output.into(),
            currency_code: policy.currency.code(),
            effective_from: Stamp(from),
        };
        let writes = writes.into();
        Ok(Change { before, after, writes, events: vec![event], ..Change::of(object, &data)? })
    }

    /// Floors of this very instant are there.
    fn outrun(&self, write: &'static str, _: &State) -> Option<Refusal> {
        (write == "floor.insert").then(|| Refusal::of(Code::ComState))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::caller::Capacity;
    use crate::fixtures::{NOW, context, price};

    fn protect() -> ProtectPrice {
        ProtectPrice {
            provider: "openai".into(),
            model: "gpt-x".into(),
            input: Basis::Official(price("10.000001")),
            output: Basis::Floor(price("32")),
            effective_from: None,
        }
    }

    fn decided(capacity: Capacity, protect: &ProtectPrice) -> Result<Change, Stop> {
        protect.decide(&context(capacity), &(), &State::default(), NOW)
    }

    /// The code, and the rule that a field breaks.
    fn refused(capacity: Capacity, protect: &ProtectPrice) -> (&'static str, Option<String>) {
        let Err(Stop::Refused(refusal)) = decided(capacity, protect) else { panic!("not refused") };
        let rule = refusal.details.plain()["fields"][0]["rule"].as_str().map(ToOwned::to_owned);
        if rule.as_deref() == Some("positive") {
            let named = refusal.details.plain()["fields"][0]["field"].clone();
            assert!(named == "official_input" || named == "floor_output", "{named}");
        }
        (refusal.code.as_str(), rule)
    }

    #[test]
    fn a_floor_is_four_fifths_of_the_official_price_rounded_up_or_what_was_given() {
        let change = decided(Capacity::Admin, &protect()).unwrap();
        assert!(
            change.data.contains(r#""floor_price_per_1m_input":8.000001,"floor_price_per_1m_output":32"#)
        );
        assert_eq!(change.writes.len(), 2);
        assert_eq!((&change.before, &change.after["input"]), (&json!({}), &json!("8.000001")));
        assert_eq!(change.object.id, "openai/gpt-x");
    }

    #[test]
    fn each_rule_is_named() {
        let zero = Basis::Official(price("0"));
        let past = Some(NOW.minus(Duration::from_micros(1)));
        for (protect, rule) in [
            (ProtectPrice { provider: "OpenAI".into(), ..protect() }, "provider"),
            (ProtectPrice { model: String::new(), ..protect() }, "length"),
            (ProtectPrice { model: "gpt\nx".into(), ..protect() }, "characters"),
            (ProtectPrice { effective_from: past, ..protect() }, "past"),
            (ProtectPrice { input: zero, ..protect() }, "positive"),
            (ProtectPrice { output: Basis::Floor(price("0")), ..protect() }, "positive"),
        ] {
            assert_eq!(refused(Capacity::Admin, &protect), ("SUP_COM_4001", Some(rule.to_owned())));
        }
        assert_eq!(refused(Capacity::User, &protect()), ("SUP_COM_4041", None));
    }

    #[test]
    fn a_basis_is_one_of_two_texts() {
        assert_eq!(Basis::parse("input", Some("10"), None).unwrap(), Basis::Official(price("10")));
        assert_eq!(Basis::parse("input", None, Some("8")).unwrap(), Basis::Floor(price("8")));
        for (official, floor) in
            [(None, None), (Some("10"), Some("8")), (Some("-1"), None), (None, Some("1e1"))]
        {
            let refusal = Basis::parse("input", official, floor).unwrap_err();
            let name = if official.is_some() && floor.is_none() { "official_input" } else { "floor_input" };
            assert_eq!(refusal.details.plain()["fields"][0]["field"], name);
        }
    }
}
