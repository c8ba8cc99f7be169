package mongotest

import (
	"crypto/md5" //nolint:gosec // what SCRAM-SHA-1 means by a password in MongoDB
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/xdg-go/scram"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Mechanisms of authentication.
const (
	scramSHA1   = "SCRAM-SHA-1"
	scramSHA256 = "SCRAM-SHA-256"
)

const codeAuthenticationFailed = 18

// credentials are the credentials of all users, by mechanism and name; nil if no client has
// to authenticate.
type credentials map[string]map[string]scram.StoredCredentials

func newCredentials(users map[string]string) (credentials, error) {
	if len(users) == 0 {
		return nil, nil //nolint:nilnil // no users are none
	}
	c := credentials{scramSHA1: {}, scramSHA256: {}}
	for name, password := range users {
		sum := md5.New()                                    //nolint:gosec // as above
		_, _ = io.WriteString(sum, name+":mongo:"+password) // a hash takes all
		old, err1 := scram.SHA1.NewClientUnprepped(name, hex.EncodeToString(sum.Sum(nil)), "")
		now, err2 := scram.SHA256.NewClient(name, password, "")
		if err := errors.Join(err1, err2); err != nil || name == "" {
			return nil, fmt.Errorf("mongotest: Users[%q]: a name or a password cannot be used: %w", name, err)
		}
		factors := scram.KeyFactors{Salt: "mongotest salt..", Iters: 4096}
		if c[scramSHA1][name], err1 = old.GetStoredCredentialsWithError(factors); err1 != nil {
			return nil, err1
		}
		if c[scramSHA256][name], err2 = now.GetStoredCredentialsWithError(factors); err2 != nil {
			return nil, err2
		}
	}
	return c, nil
}

// conversation begins one by a mechanism, nil if that is not known.
func (c credentials) conversation(mechanism string) (*scram.ServerConversation, error) {
	hash := scram.SHA256
	switch mechanism {
	case scramSHA256:
	case scramSHA1:
		hash = scram.SHA1
	default:
		return nil, failf(codeAuthenticationFailed, "there is no mechanism %.32q", mechanism)
	}
	server, err := hash.NewServer(func(name string) (scram.StoredCredentials, error) {
		stored, ok := c[mechanism][name]
		if !ok {
			return stored, errors.New("no such user")
		}
		return stored, nil
	})
	if err != nil {
		return nil, err
	}
	return server.NewConversation(), nil
}

// authentication is how far that of a connection has come.
type authentication struct {
	user     string // who has authenticated
	talk     *scram.ServerConversation
	skipLast bool // the client wants no empty exchange at the end
}

type saslCommand struct {
	Mechanism string      `bson:"mechanism"`
	Payload   bson.Binary `bson:"payload"`
	Options   struct {
		SkipEmptyExchange bool `bson:"skipEmptyExchange"`
	} `bson:"options"`
}

// authorized reports whether the client may send commands.
func (r *request) authorized() bool {
	return r.node.deployment.users == nil || r.conn.local() || r.conn.auth.user != ""
}

func runSASLStart(r *request) (bson.D, error) {
	var cmd saslCommand
	if err := r.decode(&cmd); err != nil {
		return nil, err
	}
	return r.startSASL(cmd)
}

func (r *request) startSASL(cmd saslCommand) (bson.D, error) {
	talk, err := r.node.deployment.users.conversation(cmd.Mechanism)
	if err != nil {
		return nil, err
	}
	r.conn.auth = authentication{talk: talk, skipLast: cmd.Options.SkipEmptyExchange}
	return r.stepSASL(cmd.Payload.Data)
}

func runSASLContinue(r *request) (bson.D, error) {
	var cmd saslCommand
	if err := r.decode(&cmd); err != nil {
		return nil, err
	}
	a := &r.conn.auth
	switch {
	case a.talk == nil:
		return nil, failf(codeAuthenticationFailed, "no conversation")
	case a.user != "":
		a.talk = nil
		return saslReply(nil, true), nil // the empty exchange
	}
	return r.stepSASL(cmd.Payload.Data)
}

// stepSASL takes a conversation one message further.
func (r *request) stepSASL(payload []byte) (bson.D, error) {
	a := &r.conn.auth
	answer, err := a.talk.Step(string(payload))
	if err != nil {
		*a = authentication{}
		return nil, failf(codeAuthenticationFailed, "Authentication failed.")
	}
	done := false
	if a.talk.Valid() {
		a.user, done = a.talk.Username(), a.skipLast
	}
	return saslReply([]byte(answer), done), nil
}

func saslReply(payload []byte, done bool) bson.D {
	return bson.D{
		{Key: "conversationId", Value: int32(1)},
		{Key: "done", Value: done},
		{Key: "payload", Value: bson.Binary{Data: payload}},
	}
}

func runLogout(r *request) (bson.D, error) {
	r.conn.auth = authentication{}
	return bson.D{}, nil
}

// greetAuth is what a hello is answered about authentication.
func (r *request) greetAuth(cmd *helloCommand) (doc bson.D) {
	if r.node.deployment.users == nil {
		return nil
	}
	if cmd.Mechanisms != "" {
		doc = append(doc, bson.E{Key: "saslSupportedMechs", Value: []string{scramSHA1, scramSHA256}})
	}
	var start saslCommand
	if len(cmd.Speculative) == 0 || bson.Unmarshal(cmd.Speculative, &start) != nil {
		return doc
	}
	if answer, err := r.startSASL(start); err == nil { // else the client starts anew
		doc = append(doc, bson.E{Key: "speculativeAuthenticate", Value: answer})
	}
	return doc
}
