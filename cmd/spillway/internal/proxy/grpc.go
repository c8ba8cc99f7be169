package proxy

import "net/http"

// refusesCall reports whether an answer is a refusal in gRPC's own words: UNAVAILABLE
// or RESOURCE_EXHAUSTED as a status in the place of headers.
func refusesCall(resp *http.Response) bool {
	code := resp.Header["Grpc-Status"]
	return resp.StatusCode == http.StatusOK && len(code) == 1 && (code[0] == "14" || code[0] == "8")
}

// dontRetry is the header by which package spillhttp is told that a call cannot be
// sent again. The client does not get it.
const dontRetry = "X-Should-Retry"

// refused takes in that an endpoint has refused an attempt: if the body is to be sent
// again it begins anew, and if it cannot be, the answer is the last one.
func (t *trail) refused(resp *http.Response) {
	if t == nil || t.body == nil {
		return
	}
	if t.final = !t.body.rewind(); t.final {
		resp.Header.Set(dontRetry, "false")
	}
}
