// go-ethereum's libraries, unmodified: FilterLogs of ethclient in every form that it has, and the paths
// of proof bundles by package trie.
//
// usage: client-go URL queries.json, client-go SOCKET filters.json watch, or client-go proofs BUNDLES
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"reflect"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
)

type query struct {
	Name   string
	Filter struct {
		FromBlock, ToBlock *rpc.BlockNumber
		BlockHash          *common.Hash
		Address            oneOrMany[common.Address]
		Topics             []oneOrMany[common.Hash]
	}
	Logs []types.Log
}

// oneOrMany is a value, a list of alternatives, or nothing, which is no list.
type oneOrMany[T any] []T

func (values *oneOrMany[T]) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '[' {
		return json.Unmarshal(text, (*[]T)(values))
	}
	if string(text) == "null" {
		return nil
	}
	var one T
	err := json.Unmarshal(text, &one)
	*values = []T{one}
	return err
}

func (asked query) filter() ethereum.FilterQuery {
	filter := ethereum.FilterQuery{BlockHash: asked.Filter.BlockHash, Addresses: asked.Filter.Address}
	if asked.Filter.FromBlock != nil {
		// A tag is a negative number, here as in the library.
		filter.FromBlock = big.NewInt(asked.Filter.FromBlock.Int64())
		filter.ToBlock = big.NewInt(asked.Filter.ToBlock.Int64())
	}
	for _, topics := range asked.Filter.Topics {
		filter.Topics = append(filter.Topics, topics)
	}
	return filter
}

func read(path string) ([]query, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var expected struct{ Queries []query }
	err = json.Unmarshal(text, &expected)
	return expected.Queries, err
}

func get(ctx context.Context, client *ethclient.Client, queries []query) error {
	compared, differ := 0, 0
	for _, asked := range queries {
		found, err := client.FilterLogs(ctx, asked.filter())
		if err != nil {
			return fmt.Errorf("%s: %w", asked.Name, err)
		}
		if len(found) != len(asked.Logs) {
			fmt.Printf("%s: found %d logs, expected %d\n", asked.Name, len(found), len(asked.Logs))
			differ++
			continue
		}
		for index := range found {
			compared++
			if !reflect.DeepEqual(found[index], asked.Logs[index]) {
				fmt.Printf("%s: log %d: found %+v, expected %+v\n", asked.Name, index, found[index], asked.Logs[index])
				differ++
			}
		}
	}
	fmt.Printf("%d values compared, %d differ\n", compared, differ)
	if compared == 0 || differ > 0 {
		return fmt.Errorf("ethclient was told otherwise than the node says")
	}
	return nil
}

func run(args []string) error {
	if args[0] == "proofs" {
		return verifyBundles(args[1])
	}
	queries, err := read(args[1])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := ethclient.DialContext(ctx, args[0])
	if err != nil {
		return err
	}
	defer client.Close()
	if len(args) == 3 && args[2] == "watch" {
		return watch(ctx, client, queries)
	}
	return get(ctx, client, queries)
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: client-go URL queries.json, client-go SOCKET filters.json watch, or client-go proofs BUNDLES")
		os.Exit(2)
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
