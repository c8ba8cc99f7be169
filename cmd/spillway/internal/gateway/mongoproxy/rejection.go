package mongoproxy

import (
	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// Labels of errors.
const (
	labelOverloaded = "SystemOverloadedError"
	labelRetryable  = "RetryableError"
)

// rejections are the documents that answer rejected commands, made ahead of time.
type rejections struct {
	overloaded, quota, dontRetry []byte
}

func newRejections(m *config.Mongo) rejections {
	const busy = "Request rejected: rate limit exceeded, possibly due to system overload. Throttling workload is recommended."
	base := int32(m.Parameters.BaseBackoffMS)
	return rejections{
		overloaded: rejection(busy, base, m.AllowsRetries()),
		dontRetry:  rejection(busy, base, false),
		quota:      rejection("Request rejected: this customer is over its quota.", base, m.AllowsRetries()),
	}
}

func rejection(text string, base int32, retry bool) []byte {
	var b mongowire.Builder
	b.Double("ok", 0)
	b.Text("errmsg", text)
	b.Int("code", 462)
	b.Text("codeName", "IngressRequestRateLimitExceeded")
	labels := []string{labelOverloaded}
	if retry {
		labels = append(labels, labelRetryable)
	}
	b.Array("errorLabels", labels...)
	if base > 0 {
		b.Int("baseBackoffMS", base)
	}
	return b.Document()
}

func (r *rejections) of(x ingress.Rejection) []byte {
	switch {
	case x.DontRetry:
		return r.dontRetry
	case x.Outcome == spillway.OutcomeOverQuota:
		return r.quota
	default:
		return r.overloaded
	}
}
