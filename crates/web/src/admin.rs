//! Orders that concern the whole house: reconcile, rotate keys, back up.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::Uri;

use crate::edge::Edge;
use crate::operator::{Answer, input, nothing_asked, nothing_left, shown, text, unusable};
use crate::token::Operator;

type Shared = State<Arc<Edge>>;

pub(crate) async fn reconcile(operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    nothing_asked(&uri)?;
    Ok(shown(&edge.visa.reconcile(&operator.name).await?))
}

pub(crate) async fn rotate_keys(operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    nothing_asked(&uri)?;
    Ok(shown(&edge.visa.rotate_keys(&operator.name).await?))
}

pub(crate) async fn backup(operator: Operator, State(edge): Shared, request: Request) -> Answer {
    let mut input = input(&edge, request).await?;
    let to = PathBuf::from(text(&mut input, "to")?);
    nothing_left(&input)?;
    if !to.is_absolute() || to.components().any(|part| part.as_os_str() == "..") {
        return Err(unusable("to must be an absolute path on the server, without '..'"));
    }
    tracing::info!(operator = %operator.name, "backup_requested");
    Ok(shown(&edge.visa.backup(to).await?))
}
