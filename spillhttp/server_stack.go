package spillhttp

import "net/http"

// decisionStack is the size of the stack that a decision needs, in bytes. With it, the stack does
// not grow during a rejection.
const decisionStack = 3 << 10

// prepareStack makes the stack of a new goroutine as large as a decision needs. For each request of
// HTTP/2, net/http starts a goroutine with a stack of 2 kB. It would grow twice in the middle of
// the decision, and moving a stack costs about 100 ns for each call on it.
func prepareStack(r *http.Request) {
	if r.ProtoMajor >= 2 {
		growStack(false)
	}
}

// growStack has a large frame, so calling it makes the stack grow. It does not touch the frame.
//
//go:noinline
func growStack(touch bool) {
	if touch {
		var frame [decisionStack]byte
		keep(&frame)
	}
}

//go:noinline
func keep(*[decisionStack]byte) {}
