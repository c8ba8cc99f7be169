// Package awstest tests package spillaws with clients of DynamoDB and SQS. It is a module
// apart, so that spillaws requires no more than the core of the SDK.
package awstest
