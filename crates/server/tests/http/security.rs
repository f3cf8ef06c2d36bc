use std::time::Duration;

use reqwest::header;
use serde_json::json;
use threadkeep::TenantId;
use threadkeep_server::{KeyError, KeyRole, Keys, NewKey, Quota, RateLimit, ServerOptions, TrustedIssuer};

use crate::TestServer;
use crate::server::{TestConfig, new_key, send};

#[tokio::test]
async fn without_keys_only_local_clients_are_served() {
    let server = TestServer::start().await;
    let client = server.client();
    client.get("/v1/threads").await.expect(200);
    let port = server.address.port();
    for (name, value) in [
        ("host", "evil.example".to_owned()),
        ("host", format!("127.0.0.1.nip.io:{port}")),
        ("origin", "http://evil.example".to_owned()),
        ("origin", "null".to_owned()),
        ("origin", "http://localhost:3000".to_owned()),
        ("x-forwarded-for", "127.0.0.1".to_owned()),
        ("forwarded", "for=127.0.0.1".to_owned()),
        ("via", "1.1 proxy".to_owned()),
        ("x-real-ip", "127.0.0.1".to_owned()),
        ("sec-fetch-site", "cross-site".to_owned()),
    ] {
        let refused = send(client.request("GET", "/v1/threads").header(name, &value)).await;
        assert_eq!(refused.code(403), "loopback_only", "{name}: {value}");
    }
    let own_origin = format!("http://127.0.0.1:{port}");
    send(client.request("GET", "/v1/threads").header("origin", own_origin)).await.expect(200);
}

#[tokio::test]
async fn a_valid_key_is_required_once_a_key_exists() {
    let server = TestServer::start().await;
    let (keys, tenant) = (Keys::new(&server.memory), TenantId::new("acme").unwrap());
    let (record, secret) = keys.create(new_key("acme", None, &[KeyRole::Write])).await.unwrap();
    let client = server.anonymous_client();
    let get_with = |key: &str| send(client.request("GET", "/v1/threads").bearer_auth(key));
    let without_key = client.get("/v1/threads").await;
    assert_eq!((without_key.code(401).as_str(), without_key.header("www-authenticate")), ("invalid_key", "Bearer"));
    get_with(secret.as_str()).await.expect(200);
    send(client.request("GET", "/v1/threads").header("x-api-key", secret.as_str())).await.expect(200);
    let flipped = format!("{}0", &secret.as_str()[..secret.as_str().len() - 1]);
    let flipped = if flipped == secret.as_str() { flipped.replace('0', "1") } else { flipped };
    for wrong in [flipped.as_str(), "tk_", "tk_0000000000000000_00", "", "sk-any", &record.id] {
        assert_eq!(get_with(wrong).await.code(401), "invalid_key", "{wrong}");
    }
    let (_, rotated) = keys.rotate(&tenant, &record.id).await.unwrap();
    assert_eq!(get_with(secret.as_str()).await.code(401), "invalid_key");
    get_with(rotated.as_str()).await.expect(200);
    keys.revoke(&tenant, &record.id).await.unwrap();
    assert_eq!(get_with(rotated.as_str()).await.code(401), "invalid_key");
    assert_eq!(
        client.get("/v1/threads").await.code(401),
        "invalid_key",
        "revoking the last key does not open the server"
    );
    assert!(matches!(keys.rotate(&tenant, &record.id).await, Err(KeyError::Invalid(_))));
    let other = TenantId::new("other").unwrap();
    assert!(matches!(keys.revoke(&other, &record.id).await, Err(KeyError::Unknown(_))));
    let internal = NewKey { tenant: TenantId::internal(), ..new_key("acme", None, &[KeyRole::Read]) };
    assert!(matches!(keys.create(internal).await, Err(KeyError::Invalid(_))));
    let listed = format!("{:?}", keys.list(None).await.unwrap());
    assert!(!listed.contains(&rotated.as_str()[20..]), "the secret is not stored");
}

#[tokio::test]
async fn expired_keys_are_rejected() {
    let server = TestServer::start().await;
    let keys = Keys::new(&server.memory);
    let expires_at = Some(server.memory.now().plus_ms(-1));
    let expired = keys.create(threadkeep_server::NewKey { expires_at, ..new_key("acme", None, &[KeyRole::Admin]) });
    let (_, secret) = expired.await.unwrap();
    let answer = send(server.anonymous_client().request("GET", "/v1/threads").bearer_auth(secret.as_str())).await;
    assert_eq!(answer.code(401), "invalid_key");
}

#[tokio::test]
async fn roles_limit_what_a_key_may_do() {
    let server = TestServer::start().await;
    let reader = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Read]).await;
    let writer = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let admin = server.client_with_new_key("acme", None, &[KeyRole::Admin]).await;
    assert_eq!(reader.post("/v1/threads", json!({})).await.code(403), "role_missing");
    let thread = writer.new_thread().await;
    reader.get(&format!("/v1/threads/{thread}")).await.expect(200);
    let context = format!("/v1/threads/{thread}/context");
    reader.post(&context, json!({})).await.expect(200);
    assert_eq!(reader.post(&context, json!({ "turn": "kept" })).await.code(403), "role_missing");
    // Users may import their own conversations.
    assert_eq!(reader.post("/v1/import", json!({})).await.code(403), "role_missing");
    assert_eq!(writer.post("/v1/import", json!({})).await.code(400), "unreadable_file");
    let erase = json!({ "user": "ana" });
    assert_eq!(reader.post("/v1/erase", erase.clone()).await.code(403), "role_missing");
    assert_eq!(writer.post("/v1/erase", json!({ "user": "bob" })).await.code(403), "role_missing");
    assert_eq!(writer.post("/v1/erase", erase.clone()).await.expect(200)["threads"], 1);
    writer.new_thread().await;
    assert_eq!(admin.post("/v1/erase", erase).await.expect(200)["threads"], 1);
}

/// Acting on behalf of a user does not permit erasing that user.
#[tokio::test]
async fn erasing_a_named_user_requires_an_administrator() {
    let server = TestServer::start().await;
    let ana = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let application = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let thread = ana.new_thread().await;
    let erase = json!({ "user": "ana" });
    for client in [application.clone(), application.as_user("ana")] {
        assert_eq!(client.post("/v1/erase", erase.clone()).await.code(403), "role_missing");
    }
    application.as_user("ana").get(&format!("/v1/threads/{thread}")).await.expect(200);
    let admin = server.client_with_new_key("acme", None, &[KeyRole::Admin]).await;
    assert_eq!(admin.as_user("ana").post("/v1/erase", erase.clone()).await.expect(200)["threads"], 1);
    ana.new_thread().await;
    assert_eq!(
        ana.as_user("ana").post("/v1/erase", erase).await.expect(200)["threads"],
        1,
        "the key belongs to the user"
    );
}

#[tokio::test]
async fn tenant_keys_act_for_the_tenant_or_a_named_user() {
    let server = TestServer::start().await;
    let tenant = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let ana = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let thread = ana.new_thread().await;
    let path = format!("/v1/threads/{thread}");
    tenant.get(&path).await.expect(200);
    tenant.as_user("ana").get(&path).await.expect(200);
    assert_eq!(tenant.as_user("bob").get(&path).await.code(404), "not_found");
    ana.as_user("ana").get(&path).await.expect(200);
    assert_eq!(ana.as_user("bob").get(&path).await.code(403), "other_user");
    let named = tenant.as_user("bob").post("/v1/threads", json!({})).await.expect(201);
    assert_eq!(named["owner"], json!({ "user": "bob" }));
    assert_eq!(tenant.post("/v1/threads", json!({})).await.expect(201)["owner"], "tenant");
}

/// A key change that another process writes to the file applies to the next request, even if this server has cached the key.
#[tokio::test]
async fn key_changes_by_other_processes_apply_immediately() {
    let server = TestServer::start().await;
    let other_process = Keys::new(&threadkeep::open(&server.store_url()).await.unwrap());
    let tenant = TenantId::new("acme").unwrap();
    let (record, mut secret) = other_process.create(new_key("acme", None, &[KeyRole::Read])).await.unwrap();
    let client = server.anonymous_client();
    let get_with = |key: &str| send(client.request("GET", "/v1/threads").bearer_auth(key));
    for _ in 0..10 {
        get_with(secret.as_str()).await.expect(200);
        get_with(secret.as_str()).await.expect(200);
        let (_, rotated) = other_process.rotate(&tenant, &record.id).await.unwrap();
        assert_eq!(get_with(secret.as_str()).await.code(401), "invalid_key");
        secret = rotated;
    }
    get_with(secret.as_str()).await.expect(200);
    other_process.revoke(&tenant, &record.id).await.unwrap();
    assert_eq!(get_with(secret.as_str()).await.code(401), "invalid_key");
}

/// Appends by this server do not invalidate cached keys, but every change to a key does.
#[tokio::test]
async fn key_changes_apply_immediately_between_appends() {
    let server = TestServer::start().await;
    let (this_process, tenant) = (Keys::new(&server.memory), TenantId::new("acme").unwrap());
    let other_process = Keys::new(&threadkeep::open(&server.store_url()).await.unwrap());
    let (record, mut secret) = this_process.create(new_key("acme", None, &[KeyRole::Write])).await.unwrap();
    let client = server.anonymous_client();
    let opened = send(client.request("POST", "/v1/threads").bearer_auth(secret.as_str()).json(&json!({}))).await;
    let path = format!("/v1/threads/{}/messages", opened.expect(201)["id"].as_str().unwrap());
    let body = json!({ "messages": [{ "role": "user", "text": "hello" }] });
    let say = |key: &str| send(client.request("POST", &path).bearer_auth(key).json(&body));
    for keys in [&this_process, &other_process].repeat(5) {
        for _ in 0..3 {
            say(secret.as_str()).await.expect(201);
        }
        let (_, rotated) = keys.rotate(&tenant, &record.id).await.unwrap();
        assert_eq!(say(secret.as_str()).await.code(401), "invalid_key");
        secret = rotated;
    }
    say(secret.as_str()).await.expect(201);
    other_process.revoke(&tenant, &record.id).await.unwrap();
    assert_eq!(say(secret.as_str()).await.code(401), "invalid_key");
}

#[tokio::test]
async fn rate_limited_keys_receive_retry_after() {
    let server = TestServer::start().await;
    let keys = Keys::new(&server.memory);
    let rate_limit = Some(RateLimit { per_minute: 3 });
    let limited = threadkeep_server::NewKey { rate_limit, ..new_key("acme", None, &[KeyRole::Read]) };
    let (_, secret) = keys.create(limited).await.unwrap();
    let other = server.client_with_new_key("acme", None, &[KeyRole::Read]).await;
    let client = server.anonymous_client();
    let call = || send(client.request("GET", "/v1/threads").bearer_auth(secret.as_str()));
    for _ in 0..3 {
        call().await.expect(200);
    }
    let refused = call().await;
    assert_eq!(refused.code(429), "rate_limited");
    let wait: u64 = refused.header(header::RETRY_AFTER.as_str()).parse().unwrap();
    assert!((1..=20).contains(&wait), "{:?}", Duration::from_secs(wait));
    other.get("/v1/threads").await.expect(200);
}

/// Without keys, all local callers share the configured limits. By default there are no limits.
#[tokio::test]
async fn local_callers_share_rate_limits() {
    let options = |rate: Option<u32>, quota: Option<u32>| ServerOptions {
        rate_limit: rate.map(|per_minute| RateLimit { per_minute }),
        quota: quota.map(|per_day| Quota { per_day }),
        ..TestConfig::default().options
    };
    for (options, code) in [(options(Some(3), None), "rate_limited"), (options(None, Some(3)), "quota_exceeded")] {
        let server = TestServer::start_with(TestConfig { options, ..TestConfig::default() }).await;
        let client = server.client();
        for user in ["ana", "ben", "eve"] {
            client.as_user(user).get("/v1/threads").await.expect(200);
        }
        assert_eq!(client.get("/v1/threads").await.code(429), code);
        client.get("/health").await.expect(200);
    }
}

#[tokio::test]
async fn quotas_are_counted_across_restarts_and_instances() {
    let server = TestServer::start().await;
    let keys = Keys::new(&server.memory);
    let limited =
        threadkeep_server::NewKey { quota: Some(Quota { per_day: 5 }), ..new_key("acme", None, &[KeyRole::Read]) };
    let (_, secret) = keys.create(limited).await.unwrap();
    let call = |server: &TestServer| {
        let client = server.anonymous_client();
        let key = secret.as_str().to_owned();
        async move { send(client.request("GET", "/v1/threads").bearer_auth(key)).await }
    };
    for _ in 0..3 {
        call(&server).await.expect(200);
    }
    // Start another instance on the same store, as after a restart.
    let restarted = TestServer::start_on(server.memory.clone(), TestConfig::default()).await;
    for _ in 0..2 {
        call(&restarted).await.expect(200);
    }
    for instance in [&restarted, &server] {
        let refused = call(instance).await;
        assert_eq!(refused.code(429), "quota_exceeded");
        let wait: u64 = refused.header(header::RETRY_AFTER.as_str()).parse().unwrap();
        assert!((1..=86_400).contains(&wait), "{wait}");
    }
    let other = server.client_with_new_key("acme", None, &[KeyRole::Read]).await;
    other.get("/v1/threads").await.expect(200);
}

#[tokio::test]
async fn concurrent_requests_never_exceed_the_quota() {
    let server = TestServer::start().await;
    let keys = Keys::new(&server.memory);
    let limited =
        threadkeep_server::NewKey { quota: Some(Quota { per_day: 230 }), ..new_key("acme", None, &[KeyRole::Read]) };
    let (_, secret) = keys.create(limited).await.unwrap();
    let other = TestServer::start_on(server.memory.clone(), TestConfig::default()).await;
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..8 {
        let client = if caller % 2 == 0 { server.client() } else { other.client() }.with_key(secret.as_str());
        callers.spawn(async move {
            let mut answered = 0;
            for _ in 0..40 {
                answered += u32::from(client.get("/v1/threads?limit=1").await.status == 200);
            }
            answered
        });
    }
    let answered: u32 = callers.join_all().await.into_iter().sum();
    assert_eq!(answered, 230, "of 320 requests");
}

/// A token for the user `ana` that is valid until 2100. Another program signed it with [`SECRET`].
const TOKEN: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3VlciIsImF1ZCI6ImF1dGhlbnRpY2F0ZWQiLCJleHAiOjQxMDI0NDQ4MDAsInN1YiI6ImFuYSIsInJvbGUiOiJhdXRoZW50aWNhdGVkIn0.T3TveMbm4Y_Nsm7AR-bvV-B_wK8QxPglbucARcNiSkY";
/// Like [`TOKEN`], but valid until 2023.
const OLD_TOKEN: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3VlciIsImF1ZCI6ImF1dGhlbnRpY2F0ZWQiLCJleHAiOjE3MDAwMDAwMDAsInN1YiI6ImFuYSIsInJvbGUiOiJhdXRoZW50aWNhdGVkIn0.OBLO2eu96TBqsoK2wiZSKJIxQ-HaK7CipYgSYTK5hMA";
const SECRET: &str = "a secret that has 32 bytes or more";

#[tokio::test]
async fn clients_with_a_token_act_for_its_user() {
    let tenant = TenantId::new("acme").unwrap();
    let issuer = TrustedIssuer::hs256(SECRET, "https://issuer", "authenticated", tenant).unwrap();
    let options = ServerOptions { token_issuers: vec![issuer], sweep_every: None, ..TestConfig::default().options };
    let server = TestServer::start_with(TestConfig { options, ..TestConfig::default() }).await;
    assert!(TrustedIssuer::hs256(SECRET, "https://issuer", "authenticated", TenantId::internal()).is_err());
    let ana = server.anonymous_client().with_key(TOKEN);
    let thread = ana.new_thread().await;
    assert_eq!(ana.get("/v1/threads").await.expect(200)["data"][0]["owner"], json!({ "user": "ana" }));
    ana.as_user("ana").get(&format!("/v1/threads/{thread}")).await.expect(200);
    assert_eq!(ana.as_user("bob").get("/v1/threads").await.code(403), "other_user");
    assert_eq!(ana.post("/v1/import", json!({})).await.code(400), "unreadable_file");
    assert_eq!(ana.get("/v1/keys").await.code(403), "role_missing");
    assert_eq!(ana.get("/metrics").await.code(403), "role_missing");
    assert_eq!(ana.post("/v1/erase", json!({ "user": "bob" })).await.code(403), "role_missing");
    assert_eq!(ana.post("/v1/erase", json!({ "user": "ana" })).await.expect(200)["threads"], 1);
    for refused in [
        server.anonymous_client(),
        server.anonymous_client().with_key(OLD_TOKEN),
        server.anonymous_client().with_key(&TOKEN[1..]),
    ] {
        assert_eq!(refused.get("/v1/threads").await.code(401), "invalid_key");
    }
}
