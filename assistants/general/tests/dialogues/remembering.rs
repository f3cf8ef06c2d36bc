//! What was said before.

use super::world::{World, calls, sources};

const NOTHING: &str = "I find nothing about that in what you told me or in your documents, and I know nothing else.";

#[tokio::test]
async fn what_was_said_is_quoted_with_its_day() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    assert_eq!(talk.say("Mila is allergic to nuts.").await, "I keep that in mind.");
    world.move_to("2026-06-01T10:00:00Z");
    let turn = talk.turn("What is Mila allergic to?").await;
    assert_eq!(turn.reply, "You said on 3 May 2026: “Mila is allergic to nuts.” [1]");
    assert_eq!((turn.model.as_str(), turn.usage.cost_usd), ("offline", Some(0.0)));
    assert_eq!(sources(&turn), ["said by the user on 2026-05-03"]);
    assert_eq!((turn.sources[0].kind.as_str(), &turn.sources[0].fields["seq"]), ("message", &1.into()));
    assert_eq!(
        talk.rows().await,
        [
            "user: Mila is allergic to nuts.",
            "assistant: I keep that in mind.",
            "user: What is Mila allergic to?",
            "assistant: You said on 3 May 2026: “Mila is allergic to nuts.” [1]",
        ]
    );
    assert_eq!(talk.messages().await[3].content.sources, turn.sources);
}

#[tokio::test]
async fn another_conversation_of_the_same_user_counts_too() {
    let world = World::new().await;
    world.talk("ana").await.say("The spare key is under the blue pot.").await;
    world.move_to("2026-07-14T08:00:00Z");
    let answer = world.talk("ana").await.say("Where is the spare key?").await;
    assert_eq!(answer, "You said on 3 May 2026: “The spare key is under the blue pot.” [1]");
}

// S1.38
#[tokio::test]
async fn what_nobody_said_is_not_known() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    talk.say("The tent is blue.").await;
    for question in ["What is the capital of France?", "Who won the match?", "When is my flight?", "¿Cuánto cuesta?"]
    {
        let turn = talk.turn(question).await;
        assert_eq!((turn.reply.as_str(), turn.sources.len()), (NOTHING, 0), "{question}");
    }
}

#[tokio::test]
async fn an_empty_memory_knows_nothing() {
    let world = World::new().await;
    assert_eq!(world.talk("ana").await.say("Who am I?").await, NOTHING);
}

#[tokio::test]
async fn a_question_is_no_answer_to_itself() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    for _ in 0..3 {
        assert_eq!(talk.say("Where did I park the car?").await, NOTHING);
    }
}

#[tokio::test]
async fn of_two_statements_the_one_that_bears_on_the_question_is_quoted() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    talk.say("The dentist is on Tuesday at nine.").await;
    talk.say("The plumber comes on Friday.").await;
    let answer = talk.say("When does the plumber come?").await;
    assert_eq!(answer, "You said on 3 May 2026: “The plumber comes on Friday.” [1]");
}

#[tokio::test]
async fn a_correction_is_told_beside_what_it_corrects() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    talk.say("The meeting is in room 4.").await;
    world.move_to("2026-05-09T09:00:00Z");
    talk.say("The meeting is in room 7 after all.").await;
    let answer = talk.say("In which room is the meeting?").await;
    assert!(answer.contains("on 9 May 2026: “The meeting is in room 7 after all.”"), "{answer}");
    assert!(answer.contains("on 3 May 2026: “The meeting is in room 4.”"), "{answer}");
}

#[tokio::test]
async fn a_follow_up_leans_on_the_question_before() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    talk.say("Parental leave is ninety days, and a hundred after five years.").await;
    talk.say("How long is parental leave?").await;
    let answer = talk.say("And after five years?").await;
    assert!(answer.contains("a hundred after five years"), "{answer}");
}

#[tokio::test]
async fn courtesies_are_neither_searched_nor_kept_in_mind() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    for courtesy in ["Hello!", "Thanks", "gracias"] {
        let turn = talk.turn(courtesy).await;
        assert!(turn.reply.starts_with("Hello."), "{courtesy}: {}", turn.reply);
        assert!(turn.sources.is_empty() && calls(&turn).is_empty());
    }
}

#[tokio::test]
async fn what_it_cannot_do_it_says() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    for request in ["Write me a poem about the sea.", "Please translate this into French", "Delete the pod nginx"] {
        let turn = talk.turn(request).await;
        assert!(turn.reply.starts_with("I cannot do that: no language model is behind me."), "{}", turn.reply);
        assert!(calls(&turn).is_empty());
    }
    let answer = talk.say("What can you do?").await;
    assert!(answer.starts_with("I am the offline model") && answer.contains("Remember that my seat"), "{answer}");
}

#[tokio::test]
async fn a_long_conversation_is_searched_to_its_beginning() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    talk.say("My locker at the pool is number 118.").await;
    for day in 0..60 {
        talk.say(&format!("Today I ran {day} kilometres along the canal.")).await;
    }
    let turn = talk.turn("What is the number of my locker?").await;
    assert_eq!(turn.reply, "You said on 3 May 2026: “My locker at the pool is number 118.” [1]");
    assert!(turn.context.messages <= 20, "{:?}", turn.context);
}
