// Command client drives franz-go. The bootstrap address is its only argument.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"kaas.tests/driver"
)

var members driver.Members

func main() {
	driver.Serve(run, codeOf)
}

func codeOf(err error) (int, bool) {
	var broker *kerr.Error
	if errors.As(err, &broker) {
		return int(broker.Code), true
	}
	return 0, false
}

func run(request *driver.Request, events driver.Events) (any, error) {
	switch request.Op {
	case "produce":
		return produce(request, events)
	case "consume":
		return consume(request, events)
	case "consumeTopic":
		return consumeTopic(request, events)
	case "member":
		return member(request, events)
	case "transact":
		return transact(request, events)
	case "copy":
		return copyTopic(request, events)
	case "stop":
		members.Stop(request.Target)
		return driver.Fields{}, nil
	}
	client, err := newClient()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), request.Timeout())
	defer cancel()
	admin := kadm.NewClient(client)
	switch request.Op {
	case "offset":
		place, err := request.ReadAt()
		if err != nil {
			return nil, err
		}
		offset, timestamp, err := lookUp(ctx, admin, request, place)
		return driver.OffsetFields(offset, timestamp), err
	case "committed":
		return committed(ctx, admin, request)
	default:
		return administer(ctx, admin, request)
	}
}

func brokers() []string {
	return strings.Split(os.Args[1], ",")
}

func newClient(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(brokers()...),
		kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}, options...)...)
}

var codecs = map[string]kgo.CompressionCodec{
	"":       kgo.NoCompression(),
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func produceOptions(request *driver.Request) []kgo.Opt {
	options := []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[request.Compression]),
		kgo.ProducerLinger(time.Duration(request.LingerMs) * time.Millisecond),
		kgo.AllowAutoTopicCreation(),
		kgo.UnknownTopicRetries(20),
	}
	if request.MaxRequestBytes > 0 {
		options = append(options, kgo.ProducerBatchMaxBytes(int32(request.MaxRequestBytes)))
	} else if request.BatchBytes > 0 {
		options = append(options, kgo.ProducerBatchMaxBytes(int32(request.BatchBytes)))
	}
	acks := kgo.AllISRAcks()
	if request.Acks != nil && *request.Acks == 0 {
		acks = kgo.NoAck()
	} else if request.Acks != nil && *request.Acks == 1 {
		acks = kgo.LeaderAck()
	}
	options = append(options, kgo.RequiredAcks(acks))
	if !request.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	}
	return options
}

func produce(request *driver.Request, events driver.Events) (any, error) {
	client, err := newClient(produceOptions(request)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	// The client's own delivery timeout counts from the record's timestamp, which may be long ago.
	ctx, cancel := context.WithTimeout(context.Background(), request.Timeout())
	defer cancel()
	records := request.All()
	acked := make([][2]int64, len(records))
	var done atomic.Int64
	var first sync.Once
	var failure error
	for i, record := range records {
		sent := &kgo.Record{Topic: request.Topic, Partition: record.Partition, Key: record.Key, Value: record.Value}
		if record.Timestamp != nil {
			sent.Timestamp = time.UnixMilli(*record.Timestamp)
		}
		for _, header := range record.Headers {
			sent.Headers = append(sent.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
		}
		client.Produce(ctx, sent, func(back *kgo.Record, err error) {
			if err != nil {
				first.Do(func() { failure = err })
				return
			}
			acked[i] = [2]int64{int64(back.Partition), back.Offset}
			if count := done.Add(1); count%driver.ProgressEvery == 0 {
				events("progress", driver.Fields{"acked": count})
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return nil, err
	}
	if request.Acks != nil && *request.Acks == 0 {
		for i := range acked {
			acked[i][1] = -1
		}
	}
	return driver.Fields{"acked": acked}, failure
}

func startOf(request *driver.Request) (kgo.Offset, error) {
	place, err := request.ReadFrom()
	switch {
	case err != nil:
		return kgo.Offset{}, err
	case place.Word == "earliest":
		return kgo.NewOffset().AtStart(), nil
	case place.Word == "latest":
		return kgo.NewOffset().AtEnd(), nil
	case place.Timestamp != nil:
		return kgo.NewOffset().AfterMilli(*place.Timestamp), nil
	default:
		return kgo.NewOffset().At(place.Offset), nil
	}
}

func consume(request *driver.Request, events driver.Events) (any, error) {
	start, err := startOf(request)
	if err != nil {
		return nil, err
	}
	place, _ := request.ReadFrom()
	if place.Word != "" || place.Timestamp != nil {
		// Looked up before anyone is told, so that what is written after "positioned" is read.
		position, err := positionOf(request, place)
		if err != nil {
			return nil, err
		}
		start = kgo.NewOffset().At(position)
		place.Offset = position
	}
	options := []kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{request.Topic: {request.Partition: start}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMinBytes(max(request.MinBytes, 1)),
		kgo.FetchMaxWait(time.Duration(orElse(request.MaxWaitMs, 500)) * time.Millisecond),
	}
	if request.MaxBytes > 0 {
		options = append(options, kgo.FetchMaxPartitionBytes(request.MaxBytes), kgo.FetchMaxBytes(request.MaxBytes))
	}
	client, err := newClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	events("positioned", driver.Fields{"offset": place.Offset})
	ctx, cancel := context.WithTimeout(context.Background(), request.Timeout())
	defer cancel()
	records, position := []any{}, place.Offset
	for ctx.Err() == nil && (request.Count == 0 || len(records) < request.Count) {
		fetches := client.PollFetches(ctx)
		for _, failed := range fetches.Errors() {
			if !errors.Is(failed.Err, context.DeadlineExceeded) {
				return nil, failed.Err
			}
		}
		fetches.EachRecord(func(record *kgo.Record) {
			records = append(records, request.Read(read(record)))
			position = record.Offset + 1
			if request.Stream {
				events("record", driver.Fields{"offset": record.Offset})
			}
		})
	}
	return driver.Fields{"records": records, "position": position}, nil
}

// consumeTopic reads all partitions of a topic at once; each record is told as [partition, offset, key].
func consumeTopic(request *driver.Request, events driver.Events) (any, error) {
	starts := map[int32]kgo.Offset{}
	for i := int32(0); i < request.Partitions; i++ {
		starts[i] = kgo.NewOffset().At(0)
	}
	client, err := newClient(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{request.Topic: starts}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), request.Timeout())
	defer cancel()
	records := [][]any{}
	for ctx.Err() == nil && len(records) < request.Count {
		fetches := client.PollFetches(ctx)
		for _, failed := range fetches.Errors() {
			if !errors.Is(failed.Err, context.DeadlineExceeded) {
				return nil, failed.Err
			}
		}
		fetches.EachRecord(func(record *kgo.Record) {
			records = append(records, []any{record.Partition, record.Offset, string(record.Key)})
		})
		events("progress", driver.Fields{"acked": len(records)})
	}
	return driver.Fields{"records": records}, nil
}

func positionOf(request *driver.Request, place driver.Place) (int64, error) {
	client, err := newClient()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), request.Timeout())
	defer cancel()
	offset, _, err := lookUp(ctx, kadm.NewClient(client), request, place)
	return offset, err
}

func orElse(value, otherwise int) int {
	if value == 0 {
		return otherwise
	}
	return value
}

func read(record *kgo.Record) driver.Record {
	timestamp := record.Timestamp.UnixMilli()
	result := driver.Record{
		Partition: record.Partition, Offset: record.Offset, Timestamp: &timestamp, Key: record.Key, Value: record.Value,
	}
	for _, header := range record.Headers {
		result.Headers = append(result.Headers, driver.Header{Name: header.Key, Value: header.Value})
	}
	return result
}

func lookUp(ctx context.Context, admin *kadm.Client, request *driver.Request, place driver.Place) (int64, int64, error) {
	var listed kadm.ListedOffsets
	var err error
	switch {
	case place.Word == "earliest":
		listed, err = admin.ListStartOffsets(ctx, request.Topic)
	case place.Word == "latest":
		listed, err = admin.ListEndOffsets(ctx, request.Topic)
	case place.Word == "maxTimestamp":
		listed, err = admin.ListMaxTimestampOffsets(ctx, request.Topic)
	default:
		// kadm answers with the end where no record is that young; the timestamp then is -1.
		listed, err = admin.ListOffsetsAfterMilli(ctx, *place.Timestamp, request.Topic)
	}
	if err != nil {
		return 0, 0, err
	}
	found, _ := listed.Lookup(request.Topic, request.Partition)
	if found.Err == nil && place.Timestamp != nil && found.Timestamp < 0 {
		return -1, -1, nil
	}
	return found.Offset, found.Timestamp, found.Err
}

func administer(ctx context.Context, admin *kadm.Client, request *driver.Request) (any, error) {
	switch request.Op {
	case "createTopic":
		configs := map[string]*string{}
		for name, value := range request.Configs {
			configs[name] = &value
		}
		_, err := admin.CreateTopic(ctx, max(request.Partitions, 1), 1, configs, request.Topic)
		return driver.Fields{}, err
	case "deleteTopic":
		_, err := admin.DeleteTopic(ctx, request.Topic)
		return driver.Fields{}, err
	case "listTopics":
		topics, err := admin.ListTopics(ctx)
		return driver.Fields{"topics": topics.Names()}, err
	case "describeTopic":
		topics, err := admin.ListTopics(ctx, request.Topic)
		if err != nil {
			return nil, err
		}
		topic := topics[request.Topic]
		return driver.Fields{"partitions": len(topic.Partitions), "topicId": topic.ID.String()}, topic.Err
	case "topicConfig":
		described, err := admin.DescribeTopicConfigs(ctx, request.Topic)
		if err != nil {
			return nil, err
		}
		resource, err := described.On(request.Topic, nil)
		if err != nil {
			return nil, err
		}
		for _, config := range resource.Configs {
			if config.Key == request.Name {
				return driver.Fields{"value": config.MaybeValue()}, resource.Err
			}
		}
		return nil, fmt.Errorf("topic %s has no config %s", request.Topic, request.Name)
	default:
		return nil, fmt.Errorf("no command is named %s", request.Op)
	}
}
