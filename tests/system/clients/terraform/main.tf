# Every attribute that people set, so that the second plan finds each one as it was set.
terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

variable "endpoint" { type = string }

provider "aws" {
  region                      = "us-east-1"
  access_key                  = "000000000000"
  secret_key                  = "secret"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_requesting_account_id  = true
  skip_region_validation      = true
  endpoints {
    sqs = var.endpoint
    sns = var.endpoint
  }
}

resource "aws_sqs_queue" "dead" {
  name                      = "tf-dead"
  message_retention_seconds = 1209600
}

resource "aws_sqs_queue_redrive_allow_policy" "dead" {
  queue_url = aws_sqs_queue.dead.id
  redrive_allow_policy = jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns   = [aws_sqs_queue.work.arn]
  })
}

resource "aws_sqs_queue" "work" {
  name                       = "tf-work"
  delay_seconds              = 3
  max_message_size           = 2048
  message_retention_seconds  = 86400
  receive_wait_time_seconds  = 10
  visibility_timeout_seconds = 45
  sqs_managed_sse_enabled    = true
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead.arn
    maxReceiveCount     = 4
  })
  tags = {
    team  = "queues"
    stage = "test"
  }
}

resource "aws_sqs_queue_policy" "work" {
  queue_url = aws_sqs_queue.work.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "send"
      Effect    = "Allow"
      Principal = { Service = "sns.amazonaws.com" }
      Action    = "sqs:SendMessage"
      Resource  = aws_sqs_queue.work.arn
      Condition = { ArnEquals = { "aws:SourceArn" = aws_sns_topic.news.arn } }
    }]
  })
}

resource "aws_sqs_queue" "fifo" {
  name                        = "tf-orders.fifo"
  fifo_queue                  = true
  content_based_deduplication = true
  deduplication_scope         = "messageGroup"
  fifo_throughput_limit       = "perMessageGroupId"
}

resource "aws_sqs_queue" "encrypted" {
  name                              = "tf-encrypted"
  kms_master_key_id                 = "alias/aws/sqs"
  kms_data_key_reuse_period_seconds = 600
}

resource "aws_sns_topic" "news" {
  name              = "tf-news"
  display_name      = "News"
  signature_version = 2
  delivery_policy = jsonencode({
    http = {
      defaultHealthyRetryPolicy = {
        minDelayTarget     = 1
        maxDelayTarget     = 20
        numRetries         = 5
        numMaxDelayRetries = 0
        numNoDelayRetries  = 0
        numMinDelayRetries = 0
        backoffFunction    = "linear"
      }
      disableSubscriptionOverrides = false
    }
  })
  tags = { team = "topics" }
}

resource "aws_sns_topic" "ordered" {
  name                        = "tf-ordered.fifo"
  fifo_topic                  = true
  content_based_deduplication = true
}

resource "aws_sns_topic_policy" "news" {
  arn = aws_sns_topic.news.arn
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "publish"
      Effect    = "Allow"
      Principal = { AWS = "arn:aws:iam::000000000000:root" }
      Action    = "sns:Publish"
      Resource  = aws_sns_topic.news.arn
    }]
  })
}

resource "aws_sns_topic_subscription" "work" {
  topic_arn           = aws_sns_topic.news.arn
  protocol            = "sqs"
  endpoint            = aws_sqs_queue.work.arn
  filter_policy_scope = "MessageBody"
  filter_policy       = jsonencode({ kind = ["new", { prefix = "re" }], order = { price = [{ numeric = [">", 0] }] } })
  redrive_policy      = jsonencode({ deadLetterTargetArn = aws_sqs_queue.dead.arn })
}

resource "aws_sns_topic_subscription" "ordered" {
  topic_arn            = aws_sns_topic.ordered.arn
  protocol             = "sqs"
  endpoint             = aws_sqs_queue.fifo.arn
  raw_message_delivery = true
}
