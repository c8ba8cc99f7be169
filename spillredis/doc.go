// Package spillredis puts the client policies of Spillway into github.com/redis/go-redis:
// the throttle, the in-flight limit, and retries that are paid from a budget, by the
// criticality of the context.
package spillredis
