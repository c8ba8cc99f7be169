package awstest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillaws"
	"github.com/seed90641741/spillway/spilltest"
)

// An ending is how an attempt ends in [TestLessons].
type ending struct {
	name     string
	want     spilltest.Evidence
	attempts int
	dial     error // instead of a connection
	status   int
	code     string
	path     func(http.ResponseWriter, *http.Request) // instead of an answer
	change   func(*dynamodb.Options)
	limit    time.Duration
}

// TestLessons: what each end of a call teaches. There is no throttle here. With the default strategy no failure earns anything; here
// an answer does. A call that the SDK ends before its retry loop, as its input is not valid, begins none.
func TestLessons(t *testing.T) {
	never, gone, ok := spilltest.NeverSent, spilltest.Unanswered, spilltest.Answered
	dial := func(op string, errno error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError(op, errno)}
	}
	endings := []ending{
		{name: "no descriptor", want: never, attempts: 3, dial: dial("socket", syscall.EMFILE)},
		{name: "no port", want: never, attempts: 3, dial: dial("connect", syscall.EADDRNOTAVAIL)},
		{name: "no name", want: never, attempts: 1, dial: &net.DNSError{Err: "no such host", IsNotFound: true}},
		{name: "no credentials", want: never, attempts: 1, change: func(o *dynamodb.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{}, errors.New("the file of credentials is gone")
			})
		}},
		{name: "no credentials of another service", want: never, change: func(o *dynamodb.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{}, &smithy.OperationError{ServiceID: "STS", Err: &smithy.GenericAPIError{Code: "Throttling"}}
			})
		}},
		{name: "no address", want: never, attempts: 1, change: func(o *dynamodb.Options) { o.BaseEndpoint, o.Region = nil, "" }},
		{name: "rejected", want: gone, attempts: 3, dial: dial("connect", syscall.ECONNREFUSED)},
		{name: "reset", want: gone, attempts: 3, path: func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }},
		{name: "timeout of the client", want: gone, attempts: 3, path: hang, change: func(o *dynamodb.Options) {
			o.HTTPClient = o.HTTPClient.(*awshttp.BuildableClient).WithTimeout(30 * time.Millisecond)
		}},
		{name: "deadline", want: gone, attempts: 1, path: hang, limit: 30 * time.Millisecond},
		{name: "500", want: ok, attempts: 3, status: 500},
		{name: "slow down", want: ok, attempts: 3, status: 503, code: "SlowDown"},
		{name: "not found", want: ok, attempts: 1, status: 400, code: "ResourceNotFoundException"},
		{name: "throttled", want: spilltest.OverQuota, attempts: 1, status: 400, code: "ThrottlingException"},
		{name: "429", want: spilltest.OverQuota, attempts: 1, status: 429, code: "TooManyRequestsException"},
	}
	inBothBehaviours(t, func(t *testing.T) {
		spilltest.TestBudgetLessons(t, 0.1, func(t *testing.T, b *budget.Bucket) (all []spilltest.Lesson) {
			for _, x := range endings {
				all = append(all, spilltest.Lesson{Name: x.name, Want: x.want, Attempts: x.attempts, Call: x.call(t, b)})
			}
			return all
		})
	})
}

// hang answers when the client has left.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func (x ending) call(t *testing.T, b *budget.Bucket) func(context.Context) error {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if x.path != nil {
			x.path(w, r)
			return
		}
		answer(w, x.status, x.code)
	}))
	server.Config.ErrorLog = quiet
	server.Start()
	t.Cleanup(server.Close)
	r := must(spillaws.New(spillaws.Config{Strategy: must(retry.NewBudgeted(retry.BudgetedConfig{Budget: b}))}))
	client := dynamodb.New(databaseOptions(awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
		tr.DisableKeepAlives = true
		if x.dial != nil {
			tr.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, x.dial }
		}
	})), func(o *dynamodb.Options) {
		o.BaseEndpoint, o.Retryer, o.Logger = aws.String(server.URL), r, logging.Nop{}
		o.APIOptions = append(o.APIOptions, r.Wrap)
		if x.change != nil {
			x.change(o)
		}
	})
	return func(ctx context.Context) error {
		if x.limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, x.limit)
			defer cancel()
		}
		return get(ctx, client)
	}
}
