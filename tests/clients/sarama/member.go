package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/IBM/sarama"
	"kaas.tests/driver"
)

var strategies = map[string]func() sarama.BalanceStrategy{
	"range":      sarama.NewBalanceStrategyRange,
	"roundrobin": sarama.NewBalanceStrategyRoundRobin,
	"sticky":     sarama.NewBalanceStrategySticky,
}

type handler struct {
	request *driver.Request
	events  driver.Events
}

func (h *handler) Setup(session sarama.ConsumerGroupSession) error {
	h.events("assigned", driver.Fields{"partitions": pairs(session.Claims())})
	return nil
}

func (h *handler) Cleanup(session sarama.ConsumerGroupSession) error {
	h.events("revoked", driver.Fields{"partitions": pairs(session.Claims())})
	return nil
}

func pairs(claims map[string][]int32) [][]any {
	list := [][]any{}
	for topic, partitions := range claims {
		for _, partition := range partitions {
			list = append(list, []any{topic, partition})
		}
	}
	return list
}

func (h *handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case <-session.Context().Done():
			return nil
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			h.events("records", driver.Fields{"records": [][]any{
				{message.Topic, message.Partition, message.Offset, string(message.Key)},
			}})
			session.MarkMessage(message, "")
			if h.request.Commit == "" || h.request.Commit == "each" {
				session.Commit()
				h.events("committed", nil)
			}
		}
	}
}

func member(request *driver.Request, events driver.Events) (any, error) {
	config := config()
	config.ClientID = "member"
	if request.ClientID != "" {
		config.ClientID = request.ClientID
	}
	config.Metadata.RefreshFrequency = milliseconds(request.MetadataMaxAgeMs, 2_000)
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = request.Commit == "auto"
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	config.Consumer.Return.Errors = true
	config.Consumer.Group.InstanceId = request.InstanceID
	config.Consumer.Group.Session.Timeout = milliseconds(request.SessionTimeoutMs, 10_000)
	config.Consumer.Group.Heartbeat.Interval = milliseconds(request.HeartbeatMs, 500)
	config.Consumer.Group.Rebalance.Timeout = milliseconds(request.RebalanceMs, 30_000)
	if strategy, known := strategies[request.Strategy]; known {
		config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy()}
	}
	group, err := sarama.NewConsumerGroup([]string{os.Args[1]}, request.GroupID, config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	members.Add(request.ID, cancel)
	go func() {
		for failed := range group.Errors() {
			events("warning", driver.Fields{"message": failed.Error()})
		}
	}()
	for ctx.Err() == nil {
		// Returns at each rebalance.
		err := group.Consume(ctx, request.Topics, &handler{request, events})
		if err != nil && !errors.Is(err, context.Canceled) {
			events("warning", driver.Fields{"message": err.Error()})
		}
	}
	return driver.Fields{}, group.Close()
}

func milliseconds(value, otherwise int) time.Duration {
	if value == 0 {
		value = otherwise
	}
	return time.Duration(value) * time.Millisecond
}

func committed(request *driver.Request) (any, error) {
	client, err := sarama.NewClient([]string{os.Args[1]}, config())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if request.CommitOffset != nil {
		if err := commitOffset(client, request); err != nil {
			return nil, err
		}
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, err
	}
	response, err := admin.ListConsumerGroupOffsets(request.GroupID, map[string][]int32{
		request.Topic: {request.Partition},
	})
	if err != nil {
		return nil, err
	}
	block := response.GetBlock(request.Topic, request.Partition)
	if block == nil || block.Offset < 0 {
		return driver.Fields{"offset": nil, "metadata": nil}, nil
	}
	return driver.Fields{"offset": block.Offset, "metadata": block.Metadata}, nil
}

func commitOffset(client sarama.Client, request *driver.Request) error {
	manager, err := sarama.NewOffsetManagerFromClient(request.GroupID, client)
	if err != nil {
		return err
	}
	defer manager.Close()
	partition, err := manager.ManagePartition(request.Topic, request.Partition)
	if err != nil {
		return err
	}
	partition.MarkOffset(*request.CommitOffset, request.Metadata)
	partition.ResetOffset(*request.CommitOffset, request.Metadata)
	manager.Commit()
	return nil
}
