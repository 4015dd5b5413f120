//! What a request tried to do, for the audit row of a refusal before the door (sections 7.3, 16.1): the command that the
//! route stands for, the object that its path names, and the path.

use auth::Principal;
use axum::extract::MatchedPath;
use axum::http::request::Parts;
use door::AuditRow;
use guard::Guard;
use serde_json::json;
use supply::Object;
use supply::rows::{Account, Order, Package, Settlement, Supplier};
use supply::slo::{BUTTONS, Button};

use super::read::id;

/// Longest path that is kept, in characters.
const PATH_MAX: usize = 200;

/// What was tried.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    action: Option<&'static str>,
    pub(super) object: Object,
    method: String,
    path: String,
}

impl Attempt {
    /// Of a request that has its route.
    pub(super) fn of(parts: &Parts, principal: &Principal, guard: &Guard) -> Self {
        let (method, path) = (parts.method.as_str(), parts.uri.path());
        let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let button = Button::of(method, route).and_then(|at| BUTTONS.get(at));
        let object = named(route, path).or_else(|| made(method, route));
        Self {
            action: button.and_then(|button| button.action),
            object: object.unwrap_or_else(|| Object::row("operator", principal.operator_id)),
            method: method.to_owned(),
            path: guard.redact(path).chars().take(PATH_MAX).collect(),
        }
    }

    /// Puts it into a row.
    pub(super) fn stamp(&self, row: &mut AuditRow) {
        row.action = self.action.unwrap_or(row.event_name);
        row.metadata = json!({ "method": self.method, "path": self.path });
    }
}

/// The object whose id stands in the path.
fn named(route: &str, path: &str) -> Option<Object> {
    let segments = route.split('/').zip(path.split('/'));
    let mut before = "";
    for (template, segment) in segments {
        if template.starts_with('{') {
            let kind = match before {
                "accounts" => Account::KIND,
                "packages" => Package::KIND,
                "settlements" => Settlement::KIND,
                "orders" => Order::KIND,
                _ => return None,
            };
            return Some(Object::row(kind, id(segment)?));
        }
        before = template;
    }
    None
}

/// The object that would have been made.
fn made(method: &str, route: &str) -> Option<Object> {
    let kind = match (method, route) {
        ("POST", "/api/v1/supply/accounts") => Account::KIND,
        ("POST", "/api/v1/supply/packages/draft") => Package::KIND,
        ("POST", "/api/v1/supply/settlements/withdraw") => Supplier::KIND,
        _ => return None,
    };
    Some(Object::new_of(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_object_where_it_has_one() {
        let object = |route: &str, path: &str| named(route, path).map(|object| (object.kind, object.id));
        let publish = "/api/v1/supply/packages/{package_id}/publish";
        assert_eq!(
            object(publish, "/api/v1/supply/packages/17/publish"),
            Some(("supply_package", "17".to_owned()))
        );
        assert_eq!(
            object("/api/v1/platform/orders/{id}/pay", "/api/v1/platform/orders/4/pay"),
            Some(("supply_order", "4".to_owned()))
        );
        for path in ["/api/v1/supply/packages/017/publish", "/api/v1/supply/packages/x/publish"] {
            assert_eq!(object(publish, path), None, "{path}");
        }
        assert_eq!(object("/api/v1/audit/metrics/{metric}", "/api/v1/audit/metrics/1"), None);
        assert_eq!(object("/api/v1/supply/accounts", "/api/v1/supply/accounts"), None);
    }
}
