package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"kaas.tests/driver"
)

var balancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"sticky":             kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

func memberOptions(request *driver.Request, events driver.Events) []kgo.Opt {
	tell := func(name string) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			events(name, driver.Fields{"partitions": pairs(partitions)})
		}
	}
	options := []kgo.Opt{
		kgo.ConsumerGroup(request.GroupID),
		kgo.ClientID(orText(request.ClientID, "member")),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.MetadataMaxAge(time.Duration(orElse(request.MetadataMaxAgeMs, 2_000)) * time.Millisecond),
		kgo.SessionTimeout(time.Duration(orElse(request.SessionTimeoutMs, 10_000)) * time.Millisecond),
		kgo.RebalanceTimeout(time.Duration(orElse(request.RebalanceMs, 30_000)) * time.Millisecond),
		kgo.HeartbeatInterval(time.Duration(orElse(request.HeartbeatMs, 500)) * time.Millisecond),
		// The partitions of a poll stay ours until its records are told and committed.
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(tell("assigned")),
		kgo.OnPartitionsRevoked(tell("revoked")),
		kgo.OnPartitionsLost(tell("lost")),
	}
	if request.Pattern != "" {
		options = append(options, kgo.ConsumeRegex(), kgo.ConsumeTopics(request.Pattern))
	} else {
		options = append(options, kgo.ConsumeTopics(request.Topics...))
	}
	if request.Commit != "auto" {
		options = append(options, kgo.DisableAutoCommit())
	}
	chosen := []kgo.GroupBalancer{}
	for _, name := range strings.Split(request.Strategy, ",") {
		if balancer, known := balancers[name]; known {
			chosen = append(chosen, balancer)
		}
	}
	if len(chosen) > 0 {
		options = append(options, kgo.Balancers(chosen...))
	}
	if request.InstanceID != "" {
		options = append(options, kgo.InstanceID(request.InstanceID))
	}
	return options
}

func member(request *driver.Request, events driver.Events) (any, error) {
	options := memberOptions(request, events)
	if request.Protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
		// With it the balancer stands for the broker's assignor: sticky for uniform, range for range.
		if request.Strategy != "range" {
			options = append(options, kgo.Balancers(kgo.StickyBalancer()))
		}
	}
	client, err := newClient(options...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	members.Add(request.ID, cancel)
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		for _, failed := range fetches.Errors() {
			if !errors.Is(failed.Err, context.Canceled) {
				events("warning", driver.Fields{"message": failed.Err.Error()})
			}
		}
		seen := [][]any{}
		fetches.EachRecord(func(record *kgo.Record) {
			seen = append(seen, []any{record.Topic, record.Partition, record.Offset, string(record.Key)})
		})
		if len(seen) > 0 {
			events("records", driver.Fields{"records": seen})
			commit(client, request, events)
		}
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance()
	return driver.Fields{}, nil
}

func commit(client *kgo.Client, request *driver.Request, events driver.Events) {
	if orText(request.Commit, "each") != "each" {
		return
	}
	if err := client.CommitUncommittedOffsets(context.Background()); err != nil {
		events("warning", driver.Fields{"message": err.Error()})
		return
	}
	events("committed", nil)
}

func orText(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

func pairs(partitions map[string][]int32) [][]any {
	list := [][]any{}
	for topic, numbers := range partitions {
		for _, number := range numbers {
			list = append(list, []any{topic, number})
		}
	}
	return list
}

func committed(ctx context.Context, admin *kadm.Client, request *driver.Request) (any, error) {
	if request.CommitOffset != nil {
		offsets := kadm.Offsets{}
		offsets.Add(kadm.Offset{
			Topic: request.Topic, Partition: request.Partition, At: *request.CommitOffset, LeaderEpoch: -1,
			Metadata: request.Metadata,
		})
		if err := admin.CommitAllOffsets(ctx, request.GroupID, offsets); err != nil {
			return nil, err
		}
	}
	fetched, err := admin.FetchOffsets(ctx, request.GroupID)
	if err != nil {
		return nil, err
	}
	found, exists := fetched.Lookup(request.Topic, request.Partition)
	if !exists {
		return driver.Fields{"offset": nil, "metadata": nil}, nil
	}
	return driver.Fields{"offset": found.At, "metadata": found.Metadata}, found.Err
}
