//! Answers from earlier messages.

use super::test_env::{TestEnv, calls, sources};

const NOT_FOUND: &str = "I found nothing about that in what you told me or in your documents.";

#[tokio::test]
async fn a_message_is_quoted_with_its_day() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    assert_eq!(conversation.say("Mila is allergic to nuts.").await, "I will keep that in mind.");
    env.set_time("2026-06-01T10:00:00Z");
    let turn = conversation.turn("What is Mila allergic to?").await;
    assert_eq!(turn.reply, "You said on 3 May 2026: “Mila is allergic to nuts.” [1]");
    assert_eq!((turn.model.as_str(), turn.usage.cost_usd), ("offline", Some(0.0)));
    assert_eq!(sources(&turn), ["said by the user on 2026-05-03"]);
    assert_eq!((turn.sources[0].kind.as_str(), &turn.sources[0].fields["seq"]), ("message", &1.into()));
    assert_eq!(
        conversation.rows().await,
        [
            "user: Mila is allergic to nuts.",
            "assistant: I will keep that in mind.",
            "user: What is Mila allergic to?",
            "assistant: You said on 3 May 2026: “Mila is allergic to nuts.” [1]",
        ]
    );
    assert_eq!(conversation.messages().await[3].content.sources, turn.sources);
}

#[tokio::test]
async fn other_conversations_of_the_user_are_searched() {
    let env = TestEnv::new().await;
    env.conversation("ana").await.say("The spare key is under the blue pot.").await;
    env.set_time("2026-07-14T08:00:00Z");
    let answer = env.conversation("ana").await.say("Where is the spare key?").await;
    assert_eq!(answer, "You said on 3 May 2026: “The spare key is under the blue pot.” [1]");
}

// S1.38
#[tokio::test]
async fn a_question_without_a_matching_message_is_not_answered() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("The tent is blue.").await;
    for question in ["What is the capital of France?", "Who won the match?", "When is my flight?"] {
        let turn = conversation.turn(question).await;
        assert_eq!((turn.reply.as_str(), turn.sources.len()), (NOT_FOUND, 0), "{question}");
    }
    let answer = conversation.say("¿Cuánto cuesta?").await;
    assert_eq!(answer, "No encontré nada sobre eso en lo que me contaste ni en tus documentos.");
}

#[tokio::test]
async fn an_empty_memory_has_no_answer() {
    let env = TestEnv::new().await;
    assert_eq!(env.conversation("ana").await.say("Who am I?").await, NOT_FOUND);
}

#[tokio::test]
async fn a_question_does_not_answer_itself() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    for _ in 0..3 {
        assert_eq!(conversation.say("Where did I park the car?").await, NOT_FOUND);
    }
}

#[tokio::test]
async fn the_statement_that_matches_the_question_is_quoted() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("The dentist is on Tuesday at nine.").await;
    conversation.say("The plumber comes on Friday.").await;
    let answer = conversation.say("When does the plumber come?").await;
    assert_eq!(answer, "You said on 3 May 2026: “The plumber comes on Friday.” [1]");
}

#[tokio::test]
async fn a_correction_is_quoted_with_the_original() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("The meeting is in room 4.").await;
    env.set_time("2026-05-09T09:00:00Z");
    conversation.say("The meeting is in room 7 after all.").await;
    let answer = conversation.say("In which room is the meeting?").await;
    assert!(answer.contains("on 9 May 2026: “The meeting is in room 7 after all.”"), "{answer}");
    assert!(answer.contains("on 3 May 2026: “The meeting is in room 4.”"), "{answer}");
}

#[tokio::test]
async fn a_follow_up_uses_the_previous_question() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("Parental leave is ninety days, and a hundred after five years.").await;
    conversation.say("How long is parental leave?").await;
    let answer = conversation.say("And after five years?").await;
    assert!(answer.contains("a hundred after five years"), "{answer}");
}

#[tokio::test]
async fn courtesies_are_answered_without_search() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    for (courtesy, expected) in [("Hello!", "Hello."), ("Thanks", "You are welcome."), ("gracias", "De nada.")] {
        let turn = conversation.turn(courtesy).await;
        assert!(turn.reply.starts_with(expected), "{courtesy}: {}", turn.reply);
        assert!(turn.sources.is_empty() && calls(&turn).is_empty());
    }
}

#[tokio::test]
async fn unsupported_requests_are_declined() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    for request in ["Write me a poem about the sea.", "Please translate this into French", "Delete the pod nginx"] {
        let turn = conversation.turn(request).await;
        assert!(turn.reply.starts_with("I cannot do that without a language model."), "{}", turn.reply);
        assert!(calls(&turn).is_empty());
    }
    let answer = conversation.say("What can you do?").await;
    assert!(answer.starts_with("I am the offline model") && answer.contains("Remember that my seat"), "{answer}");
}

#[tokio::test]
async fn a_long_conversation_is_searched_completely() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("My locker at the pool is number 118.").await;
    for day in 0..60 {
        conversation.say(&format!("Today I ran {day} kilometres along the canal.")).await;
    }
    let turn = conversation.turn("What is the number of my locker?").await;
    assert_eq!(turn.reply, "You said on 3 May 2026: “My locker at the pool is number 118.” [1]");
    assert!(turn.context.messages <= 20, "{:?}", turn.context);
}

#[tokio::test]
async fn lists_are_changed_and_listed() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("add oat milk and rice to my shopping list").await;
    assert!(conversation.say("soap too").await.ends_with("On your shopping list: oat milk, rice, soap."));
    assert!(conversation.say("take the rice off").await.ends_with("On your shopping list: oat milk, soap."));
    assert_eq!(conversation.say("is rice still on it?").await, "No. On your shopping list: oat milk, soap.");
}
