//! The Rust SDK as services use it: typed error, batch, attributes, long poll, cancelled long poll.
use std::collections::HashSet;
use std::env;
use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_sdk_sqs::config::{Credentials, Region};
use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::{MessageAttributeValue, SendMessageBatchRequestEntry};
use aws_sdk_sqs::{Client, Config};

type Outcome = Result<(), Box<dyn Error>>;

fn client(endpoint: &str) -> Client {
    let key = Credentials::new("000000000000", "secret", None, None, "environment");
    let config = Config::builder()
        .endpoint_url(endpoint)
        .region(Region::new("us-east-1"))
        .credentials_provider(key)
        .build();
    Client::from_conf(config)
}

async fn missing_queue_is_typed(client: &Client) -> Outcome {
    let error = client.get_queue_url().queue_name("nobody-made-it").send().await.unwrap_err();
    assert!(error.as_service_error().is_some_and(|it| it.is_queue_does_not_exist()), "{error:?}");
    Ok(())
}

async fn send_and_receive(one: &Client, other: &Client, url: &str) -> Outcome {
    let blob = MessageAttributeValue::builder().data_type("Binary").binary_value(Blob::new([0u8, 1, 255])).build()?;
    let mut batch = one.send_message_batch().queue_url(url);
    for number in 0..10 {
        let entry = SendMessageBatchRequestEntry::builder()
            .id(number.to_string())
            .message_body(format!("body {number}"))
            .message_attributes("blob", blob.clone());
        batch = batch.entries(entry.build()?);
    }
    assert_eq!(batch.send().await?.successful().len(), 10);
    let mut seen = HashSet::new();
    for _ in 0..20 {
        let got = other
            .receive_message()
            .queue_url(url)
            .max_number_of_messages(10)
            .wait_time_seconds(5)
            .message_attribute_names("All")
            .send()
            .await?;
        for message in got.messages() {
            assert!(seen.insert(message.body().unwrap_or_default().to_string()), "a message came twice");
            assert_eq!(message.message_attributes().and_then(|all| all.get("blob")), Some(&blob));
            let handle = message.receipt_handle().unwrap_or_default();
            one.delete_message().queue_url(url).receipt_handle(handle).send().await?;
        }
        if seen.len() == 10 {
            return Ok(());
        }
    }
    panic!("only {} of ten came", seen.len());
}

async fn cancelled_poll_loses_nothing(one: &Client, other: &Client, url: &str) -> Outcome {
    let poll = other.receive_message().queue_url(url).wait_time_seconds(20).send();
    assert!(tokio::time::timeout(Duration::from_millis(300), poll).await.is_err(), "an empty queue is waited on");
    one.send_message().queue_url(url).message_body("after the cancel").send().await?;
    let got = other.receive_message().queue_url(url).wait_time_seconds(10).send().await?;
    assert_eq!(got.messages().len(), 1, "the message was not handed to the one who left");
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome {
    let all: Vec<Client> = env::var("ENDPOINTS")?.split(',').map(client).collect();
    let (one, other) = (&all[0], &all[all.len() - 1]);
    missing_queue_is_typed(other).await?;
    let name = format!("rust-{}", SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos());
    let url = one.create_queue().queue_name(name).send().await?.queue_url().unwrap_or_default().to_string();
    send_and_receive(one, other, &url).await?;
    cancelled_poll_loses_nothing(one, other, &url).await?;
    other.delete_queue().queue_url(&url).send().await?;
    println!("rust: typed error, batch of 10, binary attribute, cancelled long poll");
    Ok(())
}
