package spillhttp

import "net/http"

// decisionStack is about how much of a stack, in bytes, a decision needs: that of a rejection
// does not grow any more.
const decisionStack = 3 << 10

// prepareStack makes the stack of a new goroutine as large as a decision needs. net/http starts
// a goroutine for each request of HTTP/2, with a stack of 2 kB. It would grow twice, each time
// in the middle of the decision, and to move a stack costs about 100 ns for each call that is on it.
func prepareStack(r *http.Request) {
	if r.ProtoMajor >= 2 {
		growStack(false)
	}
}

// growStack has a large frame, for which its stack grows when it is called. It does not touch
// it.
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
