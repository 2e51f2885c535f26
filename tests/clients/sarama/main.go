// Command client drives sarama. The bootstrap address is its only argument.
package main

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"time"

	"github.com/IBM/sarama"
	"kaas.tests/driver"
)

var members driver.Members

func main() {
	sarama.MaxRequestSize = 100 << 20
	driver.Serve(run, codeOf)
}

func codeOf(err error) (int, bool) {
	var code sarama.KError
	if errors.As(err, &code) {
		return int(code), true
	}
	var topic *sarama.TopicError
	if errors.As(err, &topic) {
		return int(topic.Err), true
	}
	var consumer *sarama.ConsumerError
	if errors.As(err, &consumer) {
		return codeOf(consumer.Err)
	}
	return 0, false
}

func run(request *driver.Request, events driver.Events) (any, error) {
	switch request.Op {
	case "produce":
		return produce(request, events)
	case "consume":
		return consume(request, events)
	case "offset":
		return offset(request)
	case "consumeTopic":
		return consumeTopic(request, events)
	case "member":
		return member(request, events)
	case "stop":
		members.Stop(request.Target)
		return driver.Fields{}, nil
	case "committed":
		return committed(request)
	default:
		return administer(request)
	}
}

func config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V4_1_0_0
	config.Metadata.Retry.Max = 60
	config.Metadata.Retry.Backoff = 250 * time.Millisecond
	config.Net.ReadTimeout = 90 * time.Second
	return config
}

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

func produce(request *driver.Request, events driver.Events) (any, error) {
	config := config()
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Compression = codecs[request.Compression]
	config.Producer.Flush.Frequency = time.Duration(request.LingerMs) * time.Millisecond
	config.Producer.Retry.Max = 100
	config.Producer.Retry.Backoff = 200 * time.Millisecond
	config.Producer.Timeout = request.Timeout()
	config.Producer.Return.Successes = true
	if request.MaxRequestBytes > 0 {
		config.Producer.MaxMessageBytes = request.MaxRequestBytes
	}
	if request.Acks != nil {
		config.Producer.RequiredAcks = sarama.RequiredAcks(*request.Acks)
	} else {
		config.Producer.RequiredAcks = sarama.WaitForAll
	}
	if request.Idempotent {
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1
	}
	producer, err := sarama.NewAsyncProducer([]string{os.Args[1]}, config)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	records := request.All()
	go func() {
		for i, record := range records {
			producer.Input() <- message(request.Topic, i, record)
		}
	}()
	acked := make([][2]int64, len(records))
	for done := 0; done < len(records); {
		select {
		case failed := <-producer.Errors():
			return nil, failed.Err
		case sent := <-producer.Successes():
			acked[sent.Metadata.(int)] = [2]int64{int64(sent.Partition), sent.Offset}
			if done++; done%driver.ProgressEvery == 0 {
				events("progress", driver.Fields{"acked": done})
			}
		}
	}
	if config.Producer.RequiredAcks == sarama.NoResponse {
		for i := range acked {
			acked[i][1] = -1
		}
	}
	return driver.Fields{"acked": acked}, nil
}

func message(topic string, index int, record driver.Record) *sarama.ProducerMessage {
	message := &sarama.ProducerMessage{Topic: topic, Partition: record.Partition, Metadata: index}
	if record.Key != nil {
		message.Key = sarama.ByteEncoder(record.Key)
	}
	if record.Value != nil {
		message.Value = sarama.ByteEncoder(record.Value)
	}
	if record.Timestamp != nil {
		message.Timestamp = time.UnixMilli(*record.Timestamp)
	}
	for _, header := range record.Headers {
		message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(header.Name), Value: header.Value})
	}
	return message
}

// lookUp answers -1 where there is no such offset.
func lookUp(client sarama.Client, request *driver.Request, place driver.Place) (int64, error) {
	switch {
	case place.Word == "earliest":
		return client.GetOffset(request.Topic, request.Partition, sarama.OffsetOldest)
	case place.Word == "latest":
		return client.GetOffset(request.Topic, request.Partition, sarama.OffsetNewest)
	case place.Timestamp != nil:
		return client.GetOffset(request.Topic, request.Partition, *place.Timestamp)
	default:
		return place.Offset, nil
	}
}

func offset(request *driver.Request) (any, error) {
	client, err := sarama.NewClient([]string{os.Args[1]}, config())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	place, err := request.ReadAt()
	if err != nil {
		return nil, err
	}
	found, err := lookUp(client, request, place)
	return driver.OffsetFields(found, -1), err
}

func consume(request *driver.Request, events driver.Events) (any, error) {
	config := config()
	config.Consumer.Fetch.Min = max(request.MinBytes, 1)
	config.Consumer.MaxWaitTime = 500 * time.Millisecond
	if request.MaxWaitMs > 0 {
		config.Consumer.MaxWaitTime = time.Duration(request.MaxWaitMs) * time.Millisecond
	}
	if request.MaxBytes > 0 {
		config.Consumer.Fetch.Default = request.MaxBytes
	}
	config.Consumer.Return.Errors = true
	client, err := sarama.NewClient([]string{os.Args[1]}, config)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	place, err := request.ReadFrom()
	if err != nil {
		return nil, err
	}
	position, err := lookUp(client, request, place)
	if err != nil {
		return nil, err
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, err
	}
	partition, err := consumer.ConsumePartition(request.Topic, request.Partition, position)
	if err != nil {
		return nil, err
	}
	// Closing waits for the fetch that is under way, which may be a long one.
	defer func() { go partition.AsyncClose() }()
	events("positioned", driver.Fields{"offset": position})
	records := []any{}
	timeout := time.After(request.Timeout())
	for request.Count == 0 || len(records) < request.Count {
		select {
		case record := <-partition.Messages():
			records = append(records, request.Read(read(record)))
			position = record.Offset + 1
			if request.Stream {
				events("record", driver.Fields{"offset": record.Offset})
			}
		case failed := <-partition.Errors():
			return nil, failed.Err
		case <-timeout:
			return driver.Fields{"records": records, "position": position}, nil
		}
	}
	return driver.Fields{"records": records, "position": position}, nil
}

// consumeTopic reads all partitions of a topic at once; each record is told as [partition, offset, key].
func consumeTopic(request *driver.Request, events driver.Events) (any, error) {
	consumer, err := sarama.NewConsumer([]string{os.Args[1]}, config())
	if err != nil {
		return nil, err
	}
	arrived := make(chan *sarama.ConsumerMessage)
	done := make(chan struct{})
	defer close(done)
	for i := int32(0); i < request.Partitions; i++ {
		partition, err := consumer.ConsumePartition(request.Topic, i, 0)
		if err != nil {
			return nil, err
		}
		go func() {
			for {
				select {
				case record := <-partition.Messages():
					select {
					case arrived <- record:
					case <-done:
						return
					}
				case <-done:
					partition.AsyncClose()
					return
				}
			}
		}()
	}
	timeout := time.After(request.Timeout())
	records := [][]any{}
	for len(records) < request.Count {
		select {
		case record := <-arrived:
			records = append(records, []any{record.Partition, record.Offset, string(record.Key)})
			if len(records)%driver.ProgressEvery == 0 {
				events("progress", driver.Fields{"acked": len(records)})
			}
		case <-timeout:
			return driver.Fields{"records": records}, nil
		}
	}
	return driver.Fields{"records": records}, nil
}

func read(record *sarama.ConsumerMessage) driver.Record {
	timestamp := record.Timestamp.UnixMilli()
	result := driver.Record{
		Partition: record.Partition, Offset: record.Offset, Timestamp: &timestamp, Key: record.Key, Value: record.Value,
	}
	for _, header := range record.Headers {
		result.Headers = append(result.Headers, driver.Header{Name: string(header.Key), Value: header.Value})
	}
	return result
}

func administer(request *driver.Request) (any, error) {
	admin, err := sarama.NewClusterAdmin([]string{os.Args[1]}, config())
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	switch request.Op {
	case "createTopic":
		configs := map[string]*string{}
		for name, value := range request.Configs {
			configs[name] = &value
		}
		detail := &sarama.TopicDetail{
			NumPartitions: max(request.Partitions, 1), ReplicationFactor: 1, ConfigEntries: configs,
		}
		return driver.Fields{}, admin.CreateTopic(request.Topic, detail, false)
	case "deleteTopic":
		return driver.Fields{}, admin.DeleteTopic(request.Topic)
	case "listTopics":
		topics, err := admin.ListTopics()
		names := []string{}
		for name := range topics {
			names = append(names, name)
		}
		sort.Strings(names)
		return driver.Fields{"topics": names}, err
	case "describeTopic":
		topics, err := admin.DescribeTopics([]string{request.Topic})
		if err != nil {
			return nil, err
		}
		if topics[0].Err != sarama.ErrNoError {
			return nil, topics[0].Err
		}
		return driver.Fields{"partitions": len(topics[0].Partitions)}, nil
	case "topicConfig":
		entries, err := admin.DescribeConfig(sarama.ConfigResource{
			Type: sarama.TopicResource, Name: request.Topic, ConfigNames: []string{request.Name},
		})
		if err != nil {
			return nil, err
		}
		return driver.Fields{"value": entries[0].Value}, nil
	default:
		return nil, fmt.Errorf("no command is named %s", request.Op)
	}
}
