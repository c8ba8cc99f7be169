package explain

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
)

// RetryFacts says after which failures a request is sent again.
type RetryFacts struct {
	Mode   string `json:"mode"`
	Limits string `json:"limits"`
	// Cases lists the ways in which an endpoint can fail the first attempt.
	Cases []RetryCase `json:"cases"`
	Why   string      `json:"why"`
}

// A RetryCase is one failure of an endpoint.
type RetryCase struct {
	When string `json:"when"`
	// Again is whether the request is sent again if the mode is enforce and the budget
	// has a token.
	Again bool `json:"again"`
}

// retryCases are the failures to try.
var retryCases = []struct {
	when string
	failure
}{
	{"the endpoint refuses the connection", failure{rejected: true}},
	{"the connection breaks before an answer", failure{broken: true}},
	{"500", failure{status: http.StatusInternalServerError}},
	{"502", failure{status: http.StatusBadGateway}},
	{"503", failure{status: http.StatusServiceUnavailable}},
	{"503, x-should-retry: false", failure{status: http.StatusServiceUnavailable, header: map[string]string{"X-Should-Retry": "false"}}},
	{"504", failure{status: http.StatusGatewayTimeout}},
	{"429", failure{status: http.StatusTooManyRequests}},
}

// retryCasesOfGRPC are the failures to try for a gRPC call.
var retryCasesOfGRPC = append(retryCases[:2:2], []struct {
	when string
	failure
}{
	{"UNAVAILABLE", grpcFailure("14", "")},
	{"UNAVAILABLE, grpc-retry-pushback-ms: 10", grpcFailure("14", "10")},
	{"UNAVAILABLE, grpc-retry-pushback-ms: -1", grpcFailure("14", "-1")},
	{"RESOURCE_EXHAUSTED", grpcFailure("8", "")},
	{"RESOURCE_EXHAUSTED, grpc-retry-pushback-ms: 10", grpcFailure("8", "10")},
	{"INTERNAL", grpcFailure("13", "")},
	{"DEADLINE_EXCEEDED", grpcFailure("4", "")},
}...)

func grpcFailure(code, pushback string) failure {
	f := failure{status: http.StatusOK, header: map[string]string{"Content-Type": "application/grpc", "Grpc-Status": code}}
	if pushback != "" {
		f.header["Grpc-Retry-Pushback-Ms"] = pushback
	}
	return f
}

func (e *explaining) retries() (*RetryFacts, error) {
	x := e.cluster()
	f := &RetryFacts{
		Mode: spillway.ModeEnforce.String(), Limits: given(&x.Retry),
		Why: "attempts limits the retries of one request; ratio limits retries as a share of all requests",
	}
	if !e.config.Retries(x) {
		f.Mode = string(cmp.Or(x.Retry.Mode, e.config.Mode))
		f.Why = "mode " + f.Mode + ": no retries; the list shows what mode enforce would retry"
	}
	f.Why += "; in every mode, a request on a connection that the endpoint had already closed is sent again on another connection"
	cases := retryCases
	if message.IsGRPC(e.question.Request) {
		cases = retryCasesOfGRPC
	}
	for _, c := range cases {
		again, err := e.again(c.failure)
		if err != nil {
			return nil, err
		}
		f.Cases = append(f.Cases, RetryCase{c.when, again})
	}
	return f, nil
}

// again reports whether the request is sent again after a failure, by trying it with the
// configured limits on retries. Other gates are off, retries do not wait, and the budget
// pays for them.
func (e *explaining) again(f failure) (bool, error) {
	c := *e.config
	c.Mode = config.Mode(spillway.ModeOff.String())
	c.Clusters = slices.Clone(c.Clusters)
	for i := range c.Clusters {
		x := &c.Clusters[i]
		x.RateLimit.Mode, x.Shed.Mode, x.Throttle.Mode, x.Inflight.Mode = "", "", "", ""
		x.Quota = nil
		x.Retry.Mode, x.Retry.Base, x.Retry.Ratio = config.Mode(spillway.ModeEnforce.String()), -1, 1
	}
	x, err := newRehearsal(&c, e.listener)
	if err != nil {
		return false, fmt.Errorf("trying retries: %w", err)
	}
	x.stage.failure = f
	x.play(e.request())
	return x.stage.attempts.Load() > 1, x.close()
}
