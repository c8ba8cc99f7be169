package spillrueidis

import (
	"context"
	"testing"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway/egress"
)

// an answering is a client of rueidis that answers without a server.
type answering struct{ rueidis.Client }

func (answering) Do(context.Context, rueidis.Completed) (r rueidis.RedisResult) { return r }

// BenchmarkClient is what the Client adds to a command, without the command itself.
func BenchmarkClient(b *testing.B) {
	pool, err := egress.NewPool(egress.Config{}, 0)
	if err != nil {
		b.Fatal(err)
	}
	inner, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}, ForceSingleClient: true})
	if err == nil {
		b.Fatal("a server at port 1")
	}
	defer inner.Close()
	client := &Client{Client: answering{inner}, pool: pool, backend: "127.0.0.1:1"}
	cmd := inner.B().Get().Key("k").Build().Pin()
	b.ReportAllocs()
	for b.Loop() {
		if r := client.Do(b.Context(), cmd); r.Error() != nil {
			b.Fatal(r.Error())
		}
	}
}
