// go-ethereum's ethclient, unmodified: SubscribeFilterLogs in every form that it has.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
)

// The protocol is named as the other watchers do.
type watched struct {
	Name string `json:"name"`
	Over string `json:"over"`
}

type line struct {
	watched
	Log types.Log `json:"log"`
}

// watch prints what it watches when the server has confirmed all of it, and then each log that comes.
func watch(ctx context.Context, client *ethclient.Client, queries []query) error {
	lines := make(chan line)
	failed := make(chan error)
	var watching struct {
		Watching []watched `json:"watching"`
	}
	for _, asked := range queries {
		item := watched{asked.Name, "ws"}
		logs := make(chan types.Log)
		subscription, err := client.SubscribeFilterLogs(ctx, asked.filter(), logs)
		if err != nil {
			return fmt.Errorf("%s: %w", asked.Name, err)
		}
		watching.Watching = append(watching.Watching, item)
		go func() {
			for {
				select {
				case log := <-logs:
					lines <- line{item, log}
				case err := <-subscription.Err():
					failed <- fmt.Errorf("%s: %v", item.Name, err)
					return
				}
			}
		}()
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(watching); err != nil {
		return err
	}
	for {
		select {
		case next := <-lines:
			if err := out.Encode(next); err != nil {
				return err
			}
		case err := <-failed:
			return err
		}
	}
}
