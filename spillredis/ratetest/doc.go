// Package ratetest compares what spillredis/board costs a server with what one command for each request
// costs it. It has no code but tests, and is a module so that spillredis does not need redis_rate.
package ratetest
