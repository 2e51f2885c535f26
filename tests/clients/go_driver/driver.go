// Package driver is what the Go clients share: JSON lines in and out, and records as the commands describe them.
// The commands themselves are described in tests/support/client_process.ts.
package driver

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// ProgressEvery is how many acknowledged records lie between two progress events.
const ProgressEvery = 200

// Request is one command; a field that a command does not use has its zero value.
type Request struct {
	ID               int64             `json:"id"`
	Op               string            `json:"op"`
	Topic            string            `json:"topic"`
	Partition        int32             `json:"partition"`
	Partitions       int32             `json:"partitions"`
	Configs          map[string]string `json:"configs"`
	Name             string            `json:"name"`
	Records          []Record          `json:"records"`
	Generate         *Generate         `json:"generate"`
	Compression      string            `json:"compression"`
	Acks             *int              `json:"acks"`
	Idempotent       bool              `json:"idempotent"`
	LingerMs         int               `json:"lingerMs"`
	BatchBytes       int               `json:"batchBytes"`
	MaxRequestBytes  int               `json:"maxRequestBytes"`
	TimeoutMs        int               `json:"timeoutMs"`
	From             json.RawMessage   `json:"from"`
	At               json.RawMessage   `json:"at"`
	Count            int               `json:"count"`
	KeysOnly         bool              `json:"keysOnly"`
	Stream           bool              `json:"stream"`
	MinBytes         int32             `json:"minBytes"`
	MaxBytes         int32             `json:"maxBytes"`
	MaxWaitMs        int               `json:"maxWaitMs"`
	Target           int64             `json:"target"`
	GroupID          string            `json:"groupId"`
	ClientID         string            `json:"clientId"`
	Topics           []string          `json:"topics"`
	Pattern          string            `json:"pattern"`
	Strategy         string            `json:"strategy"`
	Protocol         string            `json:"protocol"`
	InstanceID       string            `json:"instanceId"`
	SessionTimeoutMs int               `json:"sessionTimeoutMs"`
	HeartbeatMs      int               `json:"heartbeatMs"`
	RebalanceMs      int               `json:"rebalanceTimeoutMs"`
	MetadataMaxAgeMs int               `json:"metadataMaxAgeMs"`
	Commit           string            `json:"commit"`
	CommitOffset     *int64            `json:"commitOffset"`
	Metadata         string            `json:"metadata"`

	TransactionalID      string        `json:"transactionalId"`
	TransactionTimeoutMs int           `json:"transactionTimeoutMs"`
	Transactions         []Transaction `json:"transactions"`
	Output               string        `json:"output"`
	Batch                int           `json:"batch"`
	AbortEvery           int           `json:"abortEvery"`
}

// Transaction is one of the command transact.
type Transaction struct {
	Topic    string    `json:"topic"`
	Records  []Record  `json:"records"`
	Generate *Generate `json:"generate"`
	End      string    `json:"end"`
	Hold     bool      `json:"hold"`
}

// Record is one record to produce, or one that was read. Nil slices are null.
type Record struct {
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp *int64   `json:"timestamp"`
	Key       Bytes    `json:"key"`
	Value     Bytes    `json:"value"`
	Headers   []Header `json:"headers"`
}

// Bytes travel as base64, nil as null.
type Bytes []byte

func (b Bytes) MarshalJSON() ([]byte, error) {
	if b == nil {
		return []byte("null"), nil
	}
	return json.Marshal(base64.StdEncoding.EncodeToString(b))
}

func (b *Bytes) UnmarshalJSON(text []byte) error {
	var encoded *string
	if err := json.Unmarshal(text, &encoded); err != nil || encoded == nil {
		return err
	}
	decoded, err := base64.StdEncoding.DecodeString(*encoded)
	*b = decoded
	return err
}

// Header travels as [name, value].
type Header struct {
	Name  string
	Value Bytes
}

func (h Header) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{h.Name, h.Value})
}

func (h *Header) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&h.Name, &h.Value})
}

// Generate describes records with keys prefix-0, prefix-1, …, dealt to the partitions in turn.
type Generate struct {
	Count      int    `json:"count"`
	ValueBytes int    `json:"valueBytes"`
	Prefix     string `json:"prefix"`
	Partitions int32  `json:"partitions"`
}

// All returns the records to produce.
func (r *Request) All() []Record {
	if r.Generate == nil {
		return r.Records
	}
	return r.Generate.all()
}

// All returns the records to produce.
func (t *Transaction) All() []Record {
	if t.Generate == nil {
		return t.Records
	}
	return t.Generate.all()
}

func (g *Generate) all() []Record {
	records := make([]Record, g.Count)
	for i := range records {
		key := []byte(fmt.Sprintf("%s-%d", g.Prefix, i))
		value := append([]byte{}, key...)
		if padding := g.ValueBytes - len(key); padding > 0 {
			value = append(value, bytes.Repeat([]byte("."), padding)...)
		}
		records[i] = Record{Key: key, Value: value, Partition: int32(i) % max(g.Partitions, 1)}
	}
	return records
}

// Timeout of the whole command.
func (r *Request) Timeout() time.Duration {
	if r.TimeoutMs == 0 {
		return 60 * time.Second
	}
	return time.Duration(r.TimeoutMs) * time.Millisecond
}

// Place of "from" and "at": "earliest", "latest" or "maxTimestamp"; or an offset; or a timestamp.
type Place struct {
	Word      string
	Offset    int64
	Timestamp *int64
}

// ReadFrom reads the field "from", where a plain number is an offset.
func (r *Request) ReadFrom() (place Place, err error) {
	var object struct {
		Timestamp int64 `json:"timestamp"`
	}
	switch r.From[0] {
	case '"':
		err = json.Unmarshal(r.From, &place.Word)
	case '{':
		err = json.Unmarshal(r.From, &object)
		place.Timestamp = &object.Timestamp
	default:
		err = json.Unmarshal(r.From, &place.Offset)
	}
	return place, err
}

// ReadAt reads the field "at", where a plain number is a timestamp.
func (r *Request) ReadAt() (place Place, err error) {
	if r.At[0] == '"' {
		return place, json.Unmarshal(r.At, &place.Word)
	}
	place.Timestamp = new(int64)
	return place, json.Unmarshal(r.At, place.Timestamp)
}

// Read is a record as the command consume returns it.
func (r *Request) Read(record Record) any {
	if r.KeysOnly {
		return []any{record.Offset, string(record.Key)}
	}
	if record.Headers == nil {
		record.Headers = []Header{}
	}
	return record
}

// Fields of a JSON line.
type Fields map[string]any

// OffsetFields is the result of the command offset; -1 stands for nothing found.
func OffsetFields(offset, timestamp int64) Fields {
	fields := Fields{"offset": nil, "timestamp": nil}
	if offset >= 0 {
		fields["offset"] = offset
	}
	if timestamp >= 0 {
		fields["timestamp"] = timestamp
	}
	return fields
}

// Events tells what happens while a command runs.
type Events func(name string, fields Fields)

var printing sync.Mutex

func write(fields Fields) {
	line, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	printing.Lock()
	defer printing.Unlock()
	os.Stdout.Write(append(line, '\n'))
}

// Serve runs each command of stdin in a goroutine of its own. codeOf finds the broker's code in an error.
func Serve(run func(*Request, Events) (any, error), codeOf func(error) (int, bool)) {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 64<<20)
	for input.Scan() {
		request := &Request{}
		if err := json.Unmarshal(input.Bytes(), request); err != nil {
			panic(err)
		}
		go serveOne(request, run, codeOf)
	}
}

func serveOne(request *Request, run func(*Request, Events) (any, error), codeOf func(error) (int, bool)) {
	result, err := run(request, func(name string, fields Fields) {
		// Milliseconds since 1970, so that events of several processes can be put in order.
		line := Fields{"id": request.ID, "event": name, "at": float64(time.Now().UnixMicro()) / 1000}
		for key, value := range fields {
			line[key] = value
		}
		write(line)
	})
	if err == nil {
		write(Fields{"id": request.ID, "result": result})
		return
	}
	failure := Fields{"code": nil, "name": fmt.Sprintf("%T", err), "message": err.Error()}
	if code, known := codeOf(err); known {
		failure["code"] = code
	}
	write(Fields{"id": request.ID, "error": failure})
}

// Members that run, by the id of their command, each with the function that stops it.
type Members struct {
	lock sync.Mutex
	stop map[int64]func()
}

func (m *Members) Add(id int64, stop func()) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.stop == nil {
		m.stop = map[int64]func(){}
	}
	m.stop[id] = stop
}

func (m *Members) Stop(id int64) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.stop[id]()
}
