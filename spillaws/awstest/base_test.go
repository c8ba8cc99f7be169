package awstest

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/spillaws"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// inBothBehaviours runs f with the SDK's retry loop as it was before 2026, and as
// it is since.
func inBothBehaviours(t *testing.T, f func(*testing.T)) {
	for _, behaviour := range []struct{ name, env string }{{"before 2026", ""}, {"since 2026", "true"}} {
		t.Run(behaviour.name, func(t *testing.T) {
			t.Setenv("AWS_NEW_RETRIES_2026", behaviour.env)
			f(t)
		})
	}
}

// quiet drops what servers log of connections that are broken on purpose.
var quiet = log.New(io.Discard, "", 0)

// A pipe is a network of one server, without sockets, for bubbles.
type pipe struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipe) Close() error   { close(p.closed); return nil }
func (p pipe) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipe) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve serves h in the bubble of t and returns a client whose requests go there,
// whatever their URL, and time out after a minute without an answer.
func serve(t *testing.T, h http.HandlerFunc) *http.Client {
	p := pipe{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: h, ErrorLog: quiet}
	go server.Serve(p)
	transport := &http.Transport{DialContext: p.dial, ResponseHeaderTimeout: timeout}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	return &http.Client{Transport: transport}
}

// timeout is how long the client of serve waits for an answer.
const timeout = time.Minute

// secret are the credentials of all clients.
var secret = credentials.NewStaticCredentialsProvider("AKID", "SECRET", "")

// database returns a client of DynamoDB that retries through r.
func database(r *spillaws.Retryer, c aws.HTTPClient, more ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(databaseOptions(c), append([]func(*dynamodb.Options){func(o *dynamodb.Options) {
		o.Retryer = r
		o.APIOptions = append(o.APIOptions, r.Wrap)
	}}, more...)...)
}

func databaseOptions(c aws.HTTPClient) dynamodb.Options {
	return dynamodb.Options{
		Region:       "eu-west-1",
		Credentials:  secret,
		BaseEndpoint: aws.String("http://dynamodb.example"),
		HTTPClient:   c,
	}
}

// get calls the operation GetItem.
func get(ctx context.Context, client *dynamodb.Client) error { return getFrom(ctx, client, "table") }

// getFrom calls the operation GetItem on a table.
func getFrom(ctx context.Context, client *dynamodb.Client, table string) error {
	_, err := client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(table),
		Key:       map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "1"}},
	})
	return err
}

// queue returns a client of SQS that retries through r.
func queue(r *spillaws.Retryer, c aws.HTTPClient) *sqs.Client {
	return sqs.New(sqs.Options{
		Region:       "eu-west-1",
		Credentials:  secret,
		BaseEndpoint: aws.String("http://sqs.example"),
		HTTPClient:   c,
		Retryer:      r,
	}, func(o *sqs.Options) { o.APIOptions = append(o.APIOptions, r.Wrap) })
}

// receive calls the operation ReceiveMessage, which polls.
func receive(ctx context.Context, client *sqs.Client) error {
	_, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String("http://sqs.example/1/q")})
	return err
}

// answer writes an answer as services have it: an empty result, or an error.
func answer(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	if status == http.StatusOK {
		io.WriteString(w, "{}")
		return
	}
	if code == "" {
		code = "InternalServerError"
	}
	json.NewEncoder(w).Encode(map[string]string{"__type": "com.amazonaws.example#" + code, "message": "sorry"})
}

// bucket returns a bucket that holds tokens.
func bucket(capacity, tokens float64) *budget.Bucket {
	b := must(budget.New(budget.Config{Capacity: capacity, Empty: true}))
	b.Deposit("", tokens)
	return b
}

// vectors reads a file of facts into v.
func vectors(t *testing.T, file string, v any) {
	t.Helper()
	if err := json.Unmarshal(must(os.ReadFile(file)), v); err != nil {
		t.Fatal(err)
	}
}
