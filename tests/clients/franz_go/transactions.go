package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"kaas.tests/driver"
)

func transactionalOptions(request *driver.Request) []kgo.Opt {
	return []kgo.Opt{
		kgo.TransactionalID(request.TransactionalID),
		kgo.TransactionTimeout(time.Duration(orElse(request.TransactionTimeoutMs, 60_000)) * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(2 * time.Millisecond),
	}
}

// transact runs one transaction after the other.
func transact(request *driver.Request, events driver.Events) (any, error) {
	client, err := newClient(transactionalOptions(request)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	stopped := make(chan struct{})
	members.Add(request.ID, func() { close(stopped) })
	for _, transaction := range request.Transactions {
		if err := client.BeginTransaction(); err != nil {
			return nil, err
		}
		for _, record := range transaction.All() {
			client.Produce(ctx, &kgo.Record{
				Topic: transaction.Topic, Partition: record.Partition, Key: record.Key, Value: record.Value,
			}, nil)
		}
		if err := client.Flush(ctx); err != nil {
			return nil, err
		}
		if transaction.Hold {
			events("held", nil)
			<-stopped
		}
		if err := client.EndTransaction(ctx, kgo.TransactionEndTry(transaction.End != "abort")); err != nil {
			return nil, err
		}
		events("ended", nil)
	}
	return driver.Fields{}, nil
}

// copyTopic copies until it is stopped, with the group's offsets in its transactions.
func copyTopic(request *driver.Request, events driver.Events) (any, error) {
	options := append(transactionalOptions(request),
		kgo.SeedBrokers(brokers()...),
		kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }),
		kgo.MetadataMinAge(100*time.Millisecond),
		kgo.ConsumerGroup(request.GroupID),
		kgo.ConsumeTopics(request.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(100*time.Millisecond),
		kgo.SessionTimeout(time.Duration(orElse(request.SessionTimeoutMs, 10_000))*time.Millisecond),
		kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.RequireStableFetchOffsets(),
	)
	session, err := kgo.NewGroupTransactSession(options...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	members.Add(request.ID, cancel)
	copied, transactions := 0, 0
	for ctx.Err() == nil {
		fetches := session.PollRecords(ctx, orElse(request.Batch, 100))
		if fetches.NumRecords() == 0 {
			continue
		}
		if err := session.Begin(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(record *kgo.Record) {
			session.Produce(context.Background(), &kgo.Record{
				Topic: request.Output, Partition: record.Partition, Key: record.Key, Value: record.Value,
			}, nil)
		})
		transactions++
		wanted := request.AbortEvery == 0 || transactions%request.AbortEvery != 0
		end, stop := context.WithTimeout(context.Background(), time.Minute)
		committed, err := session.End(end, kgo.TransactionEndTry(wanted))
		stop()
		switch {
		case err != nil:
			return nil, fmt.Errorf("the transaction cannot be ended: %w", err)
		case committed:
			copied += fetches.NumRecords()
			events("progress", driver.Fields{"acked": copied})
		default:
			events("aborted", nil)
		}
	}
	session.Close()
	return driver.Fields{"copied": copied}, nil
}
