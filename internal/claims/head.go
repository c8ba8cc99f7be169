package claims

// HeadKey is the key in the context of an event for the head of a request that was rejected
// early: an [*net/http.Request] that is valid only during the call of Observe.
type HeadKey struct{}
