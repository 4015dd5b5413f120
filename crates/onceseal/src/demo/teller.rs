//! Sends the story and notes what was answered. Not here: what is sent, what it proves.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::{Clock as _, Time};
use reqwest::Client;
use serde_json::Value as Json;
use source::{Kind, Secret, Signer};

use super::story::{AtOnce, Scene, Signed};
use crate::random::SystemClock;

/// How old a stale delivery is.
const AGE: std::time::Duration = std::time::Duration::from_secs(3600);

/// Sends as the demo's sender.
#[derive(Clone)]
pub struct Teller {
    client: Client,
    url: String,
    signer: Arc<Signer>,
}

/// What came of a scene.
#[derive(Clone, Debug)]
pub struct Told {
    /// The scene.
    pub scene: Scene,
    /// The event's id, as its body says.
    pub event_id: String,
    /// Answers by HTTP status and result, with their number.
    pub answers: BTreeMap<(u16, String), usize>,
    /// The last answer that names a certificate.
    pub certified: Option<Json>,
    /// Run hashes named in the answers; more than one would be a doubled certificate.
    pub run_hashes: Vec<String>,
    /// The most arrivals an answer counted.
    pub arrivals: Option<u64>,
}

impl Teller {
    /// For the endpoint at `url`.
    ///
    /// # Errors
    /// No HTTP client, or no signer.
    pub fn new(url: String, secret: &Secret) -> Result<Self, String> {
        let signer = Signer::new(Kind::Stripe, secret).map_err(|cause| cause.to_string())?;
        let client = Client::builder()
            .timeout(std::time::Duration::from_secs(20))
            .no_proxy()
            .build()
            .map_err(|cause| format!("no HTTP client: {cause}"))?;
        Ok(Self { client, url, signer: Arc::new(signer) })
    }

    /// Plays a scene.
    ///
    /// # Errors
    /// The server can't be reached.
    pub async fn tell(&self, scene: Scene) -> Result<Told, String> {
        let mut answers = Vec::new();
        match scene.at_once {
            AtOnce::OneByOne => {
                for _ in 0..scene.times {
                    answers.push(self.send(scene).await?);
                }
            }
            AtOnce::All => {
                let sends: Vec<_> = (0..scene.times)
                    .map(|_| {
                        let teller = self.clone();
                        tokio::spawn(async move { teller.send(scene).await })
                    })
                    .collect();
                for send in sends {
                    answers.push(send.await.map_err(|cause| cause.to_string())??);
                }
            }
        }
        Ok(told(scene, answers))
    }

    async fn send(&self, scene: Scene) -> Result<(u16, Json), String> {
        let now = SystemClock.now();
        let signed_at: Time = if scene.signed == Signed::Stale { now.minus(AGE) } else { now };
        let headers = self.signer.sign(scene.body.as_bytes(), signed_at.seconds(), "");
        let body = match scene.signed {
            Signed::Tampered => scene.body.replacen("2000", "2001", 1),
            Signed::Right | Signed::Stale => scene.body.to_owned(),
        };
        let mut request = self.client.post(&self.url).body(body);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let answer = request.send().await.map_err(|cause| format!("the demo's server: {cause}"))?;
        let status = answer.status().as_u16();
        let body = answer.bytes().await.map_err(|cause| format!("the demo's server: {cause}"))?;
        Ok((status, serde_json::from_slice(&body).unwrap_or(Json::Null)))
    }
}

fn told(scene: Scene, answers: Vec<(u16, Json)>) -> Told {
    let sent: Json = serde_json::from_str(scene.body).unwrap_or(Json::Null);
    let text = |json: &Json, name: &str| json.get(name).and_then(Json::as_str).map(str::to_owned);
    let mut told = Told {
        scene,
        event_id: text(&sent, "id").unwrap_or_default(),
        answers: BTreeMap::new(),
        certified: None,
        run_hashes: Vec::new(),
        arrivals: None,
    };
    for (status, answer) in answers {
        let result = match status {
            200..300 => text(&answer, "status"),
            _ => text(&answer, "code"),
        };
        *told.answers.entry((status, result.unwrap_or_default())).or_default() += 1;
        told.arrivals = told.arrivals.max(answer.get("arrivals").and_then(Json::as_u64));
        if let Some(hash) = text(&answer, "run_hash") {
            if !told.run_hashes.contains(&hash) {
                told.run_hashes.push(hash);
            }
            told.certified = Some(answer);
        }
    }
    told
}
