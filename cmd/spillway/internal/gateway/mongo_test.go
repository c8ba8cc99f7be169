package gateway

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/gatewaytest"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// TestMongo: listeners for clients of MongoDB start, change and end with the others, or
// without any others.
func TestMongo(t *testing.T) {
	only := &config.Config{Mode: "enforce", Mongo: []config.Mongo{{Name: "m", Address: "127.0.0.1:0", Endpoints: []string{gatewaytest.Mongo(t)}}}}
	p, err := Start(t.Context(), only, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c, err := net.Dial("tcp", p.Addr("m").String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var b mongowire.Builder
	b.Int("ping", 1)
	b.Text("$db", "test")
	ping := mongowire.AppendMsg(nil, 1, 0, 0, b.Document())
	ask := func() (ok bool) {
		t.Helper()
		if _, err := c.Write(ping); err != nil {
			t.Fatal(err)
		}
		head := make([]byte, mongowire.HeaderSize)
		if _, err := io.ReadFull(c, head); err != nil {
			t.Fatal(err)
		}
		rest := make([]byte, mongowire.ParseHeader(head).Length-mongowire.HeaderSize)
		if _, err := io.ReadFull(c, rest); err != nil {
			t.Fatal(err)
		}
		return mongowire.Lookup(rest[5:], "ok").True()
	}
	if !ask() || !p.Serving() {
		t.Fatal("not served")
	}
	limited := *only
	m := only.Mongo[0]
	m.Parameters = config.MongoParameters{RequestEnabled: true, RequestRate: 1.0 / 3600, RequestBurst: 3600}
	limited.Mongo = []config.Mongo{m}
	if err := p.Update(&limited); err != nil {
		t.Fatal(err)
	}
	if first, second := ask(), ask(); !first || second {
		t.Error("the limit of the new configuration is not there")
	}
	if s := p.Stats(time.Now()).Mongo; len(s) != 1 || s[0].Commands != 3 || s[0].Gate.RateLimit.RejectedTotal != 1 {
		t.Errorf("%+v", s)
	}
	if err := p.Drain(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a connection is left")
	}
}
