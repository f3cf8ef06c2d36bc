//! Access without keys: with the local token, or with a cookie that a page obtained in exchange for the token.

use std::time::Duration;

use serde_json::json;
use threadkeep_server::{KeyRole, Keys, LocalAccess, LocalToken, RouteInfo, Server, ServerOptions};
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::assistants::test_assistant;
use crate::server::{Answer, Client, TIMEOUT, TOKEN, TestConfig, TestServer, new_key, send};
use crate::v1::config_with_model;

async fn start_with_access(local_access: LocalAccess) -> TestServer {
    let options = ServerOptions { local_access, ..TestConfig::default().options };
    TestServer::start_with(TestConfig { options, ..TestConfig::default() }).await
}

async fn exchange_for_cookie(client: &Client, token: &str) -> Answer {
    client.post("/v1/session", json!({ "token": token })).await
}

/// Returns the name and value of the cookie that a response sets.
fn cookie_of(answer: &Answer) -> String {
    assert_eq!(answer.status, 204, "{}", answer.text);
    answer.header("set-cookie").split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn without_keys_the_local_token_is_required() {
    let server = TestServer::start().await;
    let anonymous = server.anonymous_client();
    let unauthenticated = anonymous.get("/v1/threads").await;
    assert_eq!(
        (unauthenticated.code(401).as_str(), unauthenticated.header("www-authenticate")),
        ("invalid_key", "Bearer")
    );
    assert!(unauthenticated.text.contains("threadkeep open"), "{}", unauthenticated.text);
    server.client().get("/v1/threads").await.expect(200);
    send(anonymous.request("GET", "/v1/threads").header("x-api-key", TOKEN)).await.expect(200);
    for wrong in ["", "sk-any", &TOKEN[1..], &TOKEN[..TOKEN.len() - 1], &TOKEN.to_uppercase(), &format!("{TOKEN}0")] {
        assert_eq!(
            server.anonymous_client().with_key(wrong).get("/v1/threads").await.code(401),
            "invalid_key",
            "{wrong}"
        );
    }
    for path in ["/health", "/ready", "/v1/openapi.json", "/docs/"] {
        assert_eq!(anonymous.get(path).await.status, 200, "{path}");
    }
    // Creating a key disables the token.
    let client_with_key = server.client_with_new_key("acme", None, &[KeyRole::Read]).await;
    assert_eq!(server.client().get("/v1/threads").await.code(401), "invalid_key");
    assert_eq!(exchange_for_cookie(&anonymous, TOKEN).await.code(401), "invalid_key");
    client_with_key.get("/v1/threads").await.expect(200);
}

#[tokio::test]
async fn local_access_is_disabled_by_default() {
    let closed_server = start_with_access(ServerOptions::default().local_access).await;
    assert_eq!(closed_server.client().get("/v1/threads").await.code(401), "invalid_key");
    assert_eq!(exchange_for_cookie(&closed_server.anonymous_client(), TOKEN).await.code(401), "invalid_key");
    let open_server = start_with_access(LocalAccess::ThisMachine).await;
    open_server.anonymous_client().get("/v1/threads").await.expect(200);
    // Any key is accepted, because some clients cannot omit it.
    open_server.anonymous_client().with_key("sk-any").get("/v1/threads").await.expect(200);
}

#[tokio::test]
async fn guesses_at_a_user_chosen_token_are_rate_limited() {
    let guess = async |server: &TestServer| {
        for count in 0..1_000 {
            let answer = server.anonymous_client().with_key(&format!("guess-number-{count}")).get("/v1/threads").await;
            if answer.status != 401 {
                assert_eq!(answer.code(429), "rate_limited");
                assert!(answer.header("retry-after").parse::<u64>().unwrap() >= 1);
                return count;
            }
        }
        panic!("no guess was rate limited");
    };
    let chosen = "chosen-by-a-person";
    let is_right_token_rejected = async || {
        let server = start_with_access(LocalAccess::Token(LocalToken::new(chosen).unwrap())).await;
        assert!(guess(&server).await >= 30);
        let answer = server.anonymous_client().with_key(chosen).get("/v1/threads").await;
        assert!(matches!(answer.status, 200 | 429), "{}", answer.status);
        answer.status == 429
    };
    // A guess is allowed again after at most two seconds, so a machine that is slow for a moment may send the right token too late.
    let mut is_rejected = false;
    for _ in 0..10 {
        is_rejected = is_rejected || is_right_token_rejected().await;
    }
    assert!(is_rejected, "while guesses are limited, even the right token is rejected");
    // A generated token cannot be guessed, so the right token is accepted even while guesses are limited.
    let server = TestServer::start().await;
    assert!(guess(&server).await >= 30);
    server.client().get("/v1/threads").await.expect(200);
}

#[tokio::test]
async fn pages_exchange_the_token_for_a_cookie() {
    let server = TestServer::start().await;
    let (anonymous, port) = (server.anonymous_client(), server.address.port());
    let page = anonymous.get("/v1/session").await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").contains("frame-ancestors 'none'"));
    let exchanged = exchange_for_cookie(&anonymous, TOKEN).await;
    let cookie = cookie_of(&exchanged);
    let expected = format!("{cookie}; Path=/; Max-Age=86400; HttpOnly; SameSite=Strict");
    assert_eq!(exchanged.header("set-cookie"), expected);
    assert!(cookie.starts_with(&format!("threadkeep-{port}=")), "{cookie}");

    let own_origin = format!("http://127.0.0.1:{port}");
    let send_with_cookie = |method: &str, headers: &[(&str, &str)]| {
        let mut request = anonymous.request(method, "/v1/threads").header("cookie", &cookie);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        send(if method == "POST" { request.json(&json!({})) } else { request })
    };
    send_with_cookie("GET", &[]).await.expect(200);
    send_with_cookie("GET", &[("sec-fetch-site", "none")]).await.expect(200);
    // Requests that change something must prove that they come from a page of this server.
    send_with_cookie("POST", &[("origin", own_origin.as_str())]).await.expect(201);
    send_with_cookie("POST", &[("sec-fetch-site", "same-origin")]).await.expect(201);
    for unproven in [&[][..], &[("sec-fetch-site", "none")]] {
        assert_eq!(send_with_cookie("POST", unproven).await.code(403), "other_origin", "{unproven:?}");
    }
    // For browsers, all ports of a host are one site: pages on other ports send the cookie too.
    for other in [("origin", "http://127.0.0.1:1"), ("sec-fetch-site", "same-site"), ("x-forwarded-for", "192.0.2.1")] {
        for method in ["GET", "POST"] {
            assert!(matches!(
                send_with_cookie(method, &[other]).await.code(403).as_str(),
                "other_origin" | "loopback_only"
            ));
        }
    }
    // A key takes precedence over the cookie.
    assert_eq!(send_with_cookie("GET", &[("authorization", "Bearer wrong")]).await.code(401), "invalid_key");
}

#[tokio::test]
async fn web_sockets_with_a_cookie_require_the_origin_of_this_server() {
    let server = TestServer::start().await;
    let cookie = cookie_of(&exchange_for_cookie(&server.anonymous_client(), TOKEN).await);
    let open = async |headers: &[(&'static str, String)]| {
        let mut request = format!("ws://{}/v1/live", server.address).into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        match tokio_tungstenite::connect_async(request).await {
            Ok((_, response)) => response.status().as_u16(),
            Err(tungstenite::Error::Http(response)) => response.status().as_u16(),
            Err(error) => panic!("{error}"),
        }
    };
    let own_origin = format!("http://{}", server.address);
    assert_eq!(open(&[]).await, 401);
    assert_eq!(open(&[("cookie", cookie.clone())]).await, 403);
    assert_eq!(open(&[("cookie", cookie.clone()), ("origin", "http://127.0.0.1:1".to_owned())]).await, 403);
    assert_eq!(open(&[("cookie", "threadkeep-80=x".to_owned()), ("origin", own_origin.clone())]).await, 401);
    assert_eq!(open(&[("cookie", cookie), ("origin", own_origin)]).await, 101);
    assert_eq!(open(&[("authorization", format!("Bearer {TOKEN}"))]).await, 101);
}

#[tokio::test]
async fn cookies_are_valid_only_for_the_server_that_set_them() {
    let (server, other) = (TestServer::start().await, TestServer::start().await);
    let cookie = cookie_of(&exchange_for_cookie(&server.anonymous_client(), TOKEN).await);
    let send_with_cookie = |server: &TestServer, cookie: &str, host: &str| {
        send(server.anonymous_client().request("GET", "/v1/threads").header("cookie", cookie).header("host", host))
    };
    let (host, other_host) = (server.address.to_string(), other.address.to_string());
    send_with_cookie(&server, &cookie, &host).await.expect(200);
    // Both servers have the same token, but neither accepts the other's cookie, under either name.
    let renamed = cookie.replace(&server.address.port().to_string(), &other.address.port().to_string());
    for wrong in [cookie.as_str(), &renamed] {
        assert_eq!(send_with_cookie(&other, wrong, &other_host).await.code(401), "invalid_key", "{wrong}");
    }
    assert_eq!(
        send_with_cookie(&server, &cookie, &host.replace("127.0.0.1", "localhost")).await.code(401),
        "invalid_key"
    );
    let (name, value) = cookie.split_once('=').unwrap();
    let (expires_at, signature) = value.split_once('.').unwrap();
    let later = format!("{name}={}.{signature}", expires_at.parse::<u64>().unwrap() + 1);
    for forged in [later, format!("{name}={TOKEN}"), format!("{name}="), format!("{name}={expires_at}.")] {
        assert_eq!(send_with_cookie(&server, &forged, &host).await.code(401), "invalid_key", "{forged}");
    }
    // The server finds its cookie among others of the same name, which a page on another port can set.
    send_with_cookie(&server, &format!("{name}=x; {cookie}; {name}=y"), &host).await.expect(200);
}

/// A pass is a short-lived secret that is derived from the token. It is part of the URL that is opened in the browser.
#[tokio::test]
async fn passes_expire_soon_and_can_only_be_exchanged_for_a_cookie() {
    let server = TestServer::start().await;
    let (token, now) = (LocalToken::new(TOKEN).unwrap(), server.memory.now());
    let anonymous = server.anonymous_client();
    let pass = token.pass(now);
    assert_eq!(exchange_for_cookie(&anonymous, &pass).await.status, 204);
    assert_eq!(anonymous.clone().with_key(&pass).get("/v1/threads").await.code(401), "invalid_key");
    let expired = token.pass(now.plus_ms(-121_000));
    let pass_of_other_token = LocalToken::new(&TOKEN.to_uppercase()).unwrap().pass(now);
    for wrong in [expired.as_str(), &pass_of_other_token, "", "x"] {
        assert_eq!(exchange_for_cookie(&anonymous, wrong).await.code(401), "invalid_key", "{wrong}");
    }
    // A page of another origin cannot exchange even the right token, and its requests do not count as guesses.
    let from_other_origin = anonymous.request("POST", "/v1/session").header("origin", "http://evil.example");
    let refused = send(from_other_origin.json(&json!({ "token": TOKEN }))).await;
    assert_eq!((refused.code(403).as_str(), refused.header("set-cookie")), ("loopback_only", ""));
}

#[tokio::test]
async fn streams_opened_without_a_key_end_when_the_first_key_is_created() {
    let options = ServerOptions { heartbeat: Duration::from_millis(20), ..TestConfig::default().options };
    let server = TestServer::start_with(TestConfig { options, ..TestConfig::default() }).await;
    let client = server.client();
    let thread = client.new_thread().await;
    let events = client.request("GET", &format!("/v1/threads/{thread}/events")).send().await.unwrap();
    assert_eq!(events.status(), 200);
    Keys::new(&server.memory).create(new_key("acme", None, &[KeyRole::Read])).await.unwrap();
    let text = tokio::time::timeout(TIMEOUT, events.text()).await.unwrap().unwrap();
    assert!(text.contains("key_revoked"), "{text}");
}

/// crates/cli/tests/commands/token.rs checks that the log does not contain the token.
#[tokio::test]
async fn no_response_contains_the_token() {
    let assistants = vec![test_assistant("keeper").0];
    let server = TestServer::start_with(TestConfig { assistants, ..config_with_model().0 }).await;
    let client = server.client();
    let thread = client.new_thread().await;
    let cookie = cookie_of(&exchange_for_cookie(&client, TOKEN).await);
    let secret = TOKEN.strip_prefix("tkl_").unwrap();
    assert!(!cookie.contains(secret));
    let mut bytes_checked = 0;
    for RouteInfo { method, path, .. } in Server::routes() {
        let names =
            [("{id}", thread.as_str()), ("{assistant}", "keeper"), ("{file}", "index.html"), ("{message}", "1")];
        let path = names.iter().fold(path, |path, (name, value)| path.replace(name, value));
        if path.ends_with("/events") {
            continue;
        }
        let with_cookie = server.anonymous_client().request(&method, &path).header("cookie", &cookie);
        let with_both_headers = client.request(&method, &path).header("x-api-key", TOKEN);
        for request in [
            client.request(&method, &path),
            with_cookie,
            with_both_headers,
            server.anonymous_client().request(&method, &path),
        ] {
            let answer = send(request).await;
            assert!(!answer.text.contains(secret), "{method} {path}: {}", answer.text);
            assert!(!format!("{:?}", answer.headers).contains(secret), "{method} {path}: {:?}", answer.headers);
            bytes_checked += answer.text.len();
        }
    }
    for file in ["swagger-initializer.js", "swagger-ui.css"] {
        assert!(!client.get(&format!("/docs/{file}")).await.text.contains(secret));
    }
    assert!(bytes_checked > 100_000, "the responses had only {bytes_checked} bytes");
}
