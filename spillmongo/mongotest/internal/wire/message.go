package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/internal/mongowire"
)

// Limits of a MongoDB server, which it announces in its hello.
const (
	MaxMessageSize  = mongowire.MaxMessageSize
	MaxDocumentSize = mongowire.MaxDocumentSize
	MaxBatch        = mongowire.MaxBatch
)

const headerSize = mongowire.HeaderSize

// A Message is a command as it came.
type Message struct {
	RequestID  int32
	Body       bson.Raw   // the command
	Sequences  []Sequence // its lists of documents, of an OP_MSG
	Database   string     // of an OP_QUERY; an OP_MSG has it in $db
	Legacy     bool       // it was an OP_QUERY, and wants an OP_REPLY
	Checksum   bool       // it had a checksum, and so has its reply
	Compressed bool       // it was compressed, and so is its reply
	Compressor byte       // by which
	Exhaust    bool       // the client takes several replies
	NoReply    bool       // the client takes no reply
}

// A Sequence is a field of a command that was sent apart from its body.
type Sequence struct {
	ID   string
	Docs []bson.Raw
}

// Documents returns the documents of the field called id, which may have come in
// the body or apart from it.
func (m *Message) Documents(id string) ([]bson.Raw, error) {
	for _, s := range m.Sequences {
		if s.ID == id {
			return s.Docs, nil
		}
	}
	array, ok := m.Body.Lookup(id).ArrayOK()
	if !ok {
		return nil, nil
	}
	var docs []bson.Raw
	for _, v := range Elements(array) {
		doc, ok := v.DocumentOK()
		if !ok || len(docs) == MaxBatch {
			return nil, fmt.Errorf("mongotest: %s must be at most %d documents", id, MaxBatch)
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// Parse reads a message, header and all. What it returns shares its bytes with
// data, unless it was compressed.
func Parse(data []byte) (*Message, error) {
	if size, ok := mongowire.Length(data); !ok || size != len(data) || size < headerSize || size > MaxMessageSize {
		return nil, fmt.Errorf("mongotest: a message of %d bytes says that it has another length, or is out of bounds", len(data))
	}
	head := mongowire.ParseHeader(data)
	m := &Message{RequestID: head.RequestID}
	if head.OpCode != mongowire.OpCompressed {
		return m, m.parse(head.OpCode, data, headerSize)
	}
	c, payload, err := expand(data[headerSize:])
	if err != nil {
		return nil, err
	}
	m.Compressed, m.Compressor = true, c.Compressor
	return m, m.parse(c.OpCode, payload, 0)
}

// parse reads what follows the header, which takes up the first bytes of data.
func (m *Message) parse(code int32, data []byte, header int) error {
	switch code {
	case mongowire.OpMsg:
		return m.parseMsg(data, header)
	case mongowire.OpQuery:
		return m.parseQuery(data[header:])
	default:
		return fmt.Errorf("mongotest: operation code %d is not supported", code)
	}
}

func (m *Message) parseMsg(data []byte, header int) error {
	if len(data) < header+4 {
		return errors.New("mongotest: an OP_MSG without flags")
	}
	flags := binary.LittleEndian.Uint32(data[header:])
	if unknown := flags & mongowire.RequiredFlags &^ (mongowire.ChecksumPresent | mongowire.MoreToCome); unknown != 0 {
		return fmt.Errorf("mongotest: unknown required flags %#x", unknown)
	}
	m.NoReply, m.Exhaust = flags&mongowire.MoreToCome != 0, flags&mongowire.ExhaustAllowed != 0
	rest := data[header+4:]
	if flags&mongowire.ChecksumPresent != 0 {
		m.Checksum = true
		end := len(data) - 4
		if len(rest) < 4 {
			return errors.New("mongotest: an OP_MSG without its checksum")
		}
		// The checksum of a compressed message went with its header.
		if header > 0 && binary.LittleEndian.Uint32(data[end:]) != mongowire.Checksum(data[:end]) {
			return errors.New("mongotest: wrong checksum")
		}
		rest = rest[:len(rest)-4]
	}
	return m.parseSections(rest)
}

func (m *Message) parseSections(rest []byte) (err error) {
	budget := MaxBatch
	for len(rest) > 0 {
		kind := rest[0]
		switch {
		case kind == 0 && m.Body == nil:
			m.Body, rest, err = Document(rest[1:])
		case kind == 1:
			rest, err = m.parseSequence(rest[1:], &budget)
		default:
			err = fmt.Errorf("mongotest: unexpected section of kind %d", kind)
		}
		if err != nil {
			return err
		}
	}
	if m.Body == nil {
		return errors.New("mongotest: an OP_MSG without a body")
	}
	return nil
}

// parseSequence reads a document sequence, and takes its documents from budget.
func (m *Message) parseSequence(data []byte, budget *int) (rest []byte, err error) {
	size, ok := mongowire.Length(data)
	if !ok || size < 5 || size > len(data) {
		return nil, errors.New("mongotest: a document sequence with a wrong length")
	}
	seq, rest := data[4:size], data[size:]
	name, docs, ok := mongowire.CutString(seq)
	id := string(name)
	if !ok || len(m.Sequences) == 8 || slices.ContainsFunc(m.Sequences, func(s Sequence) bool { return s.ID == id }) {
		return nil, errors.New("mongotest: a document sequence without a name of its own")
	}
	s := Sequence{ID: id}
	for len(docs) > 0 {
		if *budget--; *budget < 0 {
			return nil, fmt.Errorf("mongotest: more than %d documents", MaxBatch)
		}
		var doc bson.Raw
		if doc, docs, err = Document(docs); err != nil {
			return nil, err
		}
		s.Docs = append(s.Docs, doc)
	}
	m.Sequences = append(m.Sequences, s)
	return rest, nil
}

// parseQuery reads an OP_QUERY for a command.
func (m *Message) parseQuery(data []byte) error {
	m.Legacy = true
	name, doc, ok := mongowire.ParseQuery(data)
	if !ok {
		return errors.New("mongotest: an OP_QUERY cut short")
	}
	database, ok := strings.CutSuffix(string(name), ".$cmd")
	if !ok || database == "" {
		return errors.New("mongotest: an OP_QUERY that is not a command")
	}
	m.Database = database
	var err error
	m.Body, _, err = Document(doc)
	return err
}
