//! Messages are erased after confirmation. The assistant never quotes the user's questions or its own earlier answers
//! as an answer.

use super::test_env::{TestEnv, calls};

const NOT_FOUND: &str = "I found nothing about that in what you told me or in your documents.";

#[tokio::test]
async fn a_confirmed_erasure_also_erases_the_request() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("I was diagnosed with asthma last year").await;
    conversation.say("The plumber comes on Friday.").await;
    env.conversation("ana").await.say("My asthma spray is in the drawer").await;
    assert!(conversation.say("What do you know about my asthma?").await.contains("diagnosed"));
    let turn = conversation.turn("Forget what I said about my asthma").await;
    assert!(turn.reply.contains("diagnosed with asthma") && turn.reply.contains("spray"), "{}", turn.reply);
    assert!(turn.reply.ends_with("Shall I erase all of these for good?"), "{}", turn.reply);
    let turn = conversation.turn("yes please").await;
    assert_eq!(
        (calls(&turn), turn.reply.as_str()),
        (vec!["erase_messages{}".to_owned()], "I have erased these 2 messages and your request.")
    );
    for question in ["What do you know about my asthma?", "Where is my spray?", "What did I say today about asthma?"] {
        assert_eq!(conversation.say(question).await, NOT_FOUND, "{question}");
    }
    assert!(conversation.say("When does the plumber come?").await.contains("Friday"));
    let rows = conversation.rows().await;
    assert!(!rows.iter().any(|row| row.contains("diagnosed") || row.contains("Forget")), "{rows:#?}");
}

#[tokio::test]
async fn erasures_are_confirmed_in_other_words() {
    let env = TestEnv::new().await;
    for (request, confirmation) in [
        ("actually forget the side door code", "yes, get rid of it"),
        ("could you forget the side door code", "yes please, delete"),
        ("right, wipe everything you know about me", "yes all of it"),
    ] {
        let conversation = env.conversation("ana").await;
        conversation.say("The side door code is 4471").await;
        let listed = conversation.say(request).await;
        assert!(listed.contains("4471"), "{request}: {listed}");
        let is_gone = conversation.say("is it gone?").await;
        assert_eq!(is_gone, "Not yet: nothing is erased until you confirm the list.");
        conversation.say(request).await;
        let turn = conversation.turn(confirmation).await;
        assert_eq!(calls(&turn), vec!["erase_messages{}".to_owned()], "{confirmation}: {}", turn.reply);
        assert!(!conversation.say("What is the side door code?").await.contains("4471"), "{confirmation}");
    }
}

#[tokio::test]
async fn declined_erasure_keeps_the_messages() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("My sister lives in Berlin").await;
    conversation.say("forget what I told you about my sister").await;
    conversation.say("no").await;
    assert!(conversation.say("Where does my sister live?").await.contains("Berlin"));
}

#[tokio::test]
async fn confirming_an_empty_list_erases_nothing() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("My sister lives in Berlin").await;
    let reply = conversation.say("forget what I told you about the insurance").await;
    assert_eq!(reply, "I found nothing about that in what you told me, so there is nothing to erase.");
    assert_eq!(conversation.say("yes").await, "There is nothing to erase.");
    assert!(conversation.say("Where does my sister live?").await.contains("Berlin"));
}

#[tokio::test]
async fn yes_without_a_list_erases_nothing() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("My sister lives in Berlin").await;
    let turn = conversation.turn("yes").await;
    assert!(calls(&turn).is_empty(), "{turn:?}");
    assert!(conversation.say("Where does my sister live?").await.contains("Berlin"));
}

#[tokio::test]
async fn everything_is_erased_after_a_confirmation() {
    let env = TestEnv::new().await;
    let first = env.conversation("ana").await;
    first.say("My mentor is called Solveig.").await;
    first.say("Who is my mentor?").await;
    let conversation = env.conversation("ana").await;
    conversation.say("Remember that my favourite colour is teal.").await;
    let listed = conversation.say("Forget everything you know about me").await;
    assert!(listed.contains("Solveig") && listed.contains("- your preferences: favourite colour"), "{listed}");
    let done = conversation.say("yes, all of it").await;
    assert!(done.contains("I have erased") && done.ends_with("Your preferences are forgotten too."), "{done}");
    assert!(conversation.preferences().await.is_empty());
    let rows = first.rows().await.join("\n");
    assert!(!rows.contains("Solveig"), "{rows}");
    assert_eq!(conversation.say("Who is my mentor?").await, NOT_FOUND);
}

#[tokio::test]
async fn repeated_questions_have_the_same_answer() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("The dentist is on 12 May at nine.").await;
    for day in 4..=20 {
        env.set_time(&format!("2026-05-{day:02}T09:00:00Z"));
        for question in ["When is the dentist?", "when was the dentist again", "the dentist, when is it?"] {
            let answer = conversation.say(question).await;
            assert_eq!(answer, "You said on 3 May 2026: “The dentist is on 12 May at nine.” [1]", "{question}");
        }
    }
}

#[tokio::test]
async fn the_newest_of_several_contradictory_statements_comes_first() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("The dentist is on 12 May.").await;
    conversation.say("The plumber comes on Friday.").await;
    conversation.say("When is the dentist?").await;
    env.set_time("2026-05-05T09:00:00Z");
    conversation.say("Actually it moved to 14 May").await;
    let answer = conversation.say("When is the dentist?").await;
    assert!(answer.starts_with("You said on 5 May 2026: “Actually it moved to 14 May” [1]"), "{answer}");
    assert!(answer.contains("Before that, you said on 3 May 2026: “The dentist is on 12 May.” [2]"), "{answer}");
    let other = env.conversation("ana").await;
    other.say("Priya leads Falcon").await;
    env.set_time("2026-05-08T09:00:00Z");
    other.say("Priya handed Falcon over to Tom").await;
    let answer = other.say("Who leads Falcon now?").await;
    assert!(answer.starts_with("You said on 8 May 2026: “Priya handed Falcon over to Tom”"), "{answer}");
    let answer = other.say("who leads it now?").await;
    assert!(answer.starts_with("You said on 8 May 2026: “Priya handed Falcon over to Tom”"), "{answer}");
}

#[tokio::test]
async fn a_date_in_a_question_limits_the_answer_to_messages_from_that_date() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("The Falcon budget is 40000.").await;
    conversation.say("Bought a new bike").await;
    env.set_time("2026-05-10T09:00:00Z");
    conversation.say("The Falcon launch is in June.").await;
    env.set_time("2026-05-11T09:00:00Z");
    let answer = conversation.say("What did I say yesterday?").await;
    assert_eq!(answer, "You said on 10 May 2026: “The Falcon launch is in June.” [1]");
    let answer = conversation.say("What did I say about Falcon on 3 May?").await;
    assert_eq!(answer, "You said on 3 May 2026: “The Falcon budget is 40000.” [1]");
    let answer = env.conversation("ana").await.say("¿Qué dije el 3 de mayo?").await;
    assert!(answer.contains("El 3 de mayo de 2026 dijiste: “The Falcon budget is 40000.” [1]"), "{answer}");
    assert!(answer.contains("bike") && !answer.contains("June"), "{answer}");
    assert_eq!(conversation.say("What did I say about Falcon two months ago?").await, NOT_FOUND);
}
