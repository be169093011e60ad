// go-ethereum's trie package, unmodified: the paths of proof bundles, and the headers to their anchors.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethdb/memorydb"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

type path struct {
	Index uint64
	Rlp   hexutil.Bytes
	Proof []hexutil.Bytes
}

type bundle struct {
	Header      hexutil.Bytes
	Transaction path
	Receipt     *path
	Anchor      struct {
		Number uint64
		Hash   common.Hash
		Path   []hexutil.Bytes
	}
}

// verify has the library find the value in the nodes of the path.
func (it path) verify(root common.Hash) error {
	nodes := memorydb.New()
	for _, node := range it.Proof {
		if err := nodes.Put(crypto.Keccak256(node), node); err != nil {
			return err
		}
	}
	value, err := trie.VerifyProof(root, rlp.AppendUint64(nil, it.Index), nodes)
	if err == nil && !bytes.Equal(value, it.Rlp) {
		err = fmt.Errorf("another value is at index %d", it.Index)
	}
	return err
}

// verify gives how many paths and headers were verified.
func (it bundle) verify() (int, error) {
	var header types.Header
	if err := rlp.DecodeBytes(it.Header, &header); err != nil {
		return 0, err
	}
	count := 1
	if err := it.Transaction.verify(header.TxHash); err != nil {
		return 0, err
	}
	if it.Receipt != nil {
		count++
		if err := it.Receipt.verify(header.ReceiptHash); err != nil {
			return 0, err
		}
	}
	hash := crypto.Keccak256Hash(it.Header)
	for _, above := range it.Anchor.Path {
		var next types.Header
		if err := rlp.DecodeBytes(above, &next); err != nil {
			return 0, err
		}
		if next.ParentHash != hash {
			return 0, fmt.Errorf("header %v names another parent", next.Number)
		}
		hash = crypto.Keccak256Hash(above)
		count++
	}
	if hash != it.Anchor.Hash {
		return 0, fmt.Errorf("the way leads to %v", hash)
	}
	return count, nil
}

// verifyBundles reads a bundle from each line of a file.
func verifyBundles(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	bundles, count := 0, 0
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 {
			break
		}
		var read bundle
		if err := json.Unmarshal(line, &read); err != nil {
			return err
		}
		own, refusal := read.verify()
		if refusal != nil {
			return fmt.Errorf("bundle %d: %w", bundles, refusal)
		}
		bundles, count = bundles+1, count+own
		if err != nil {
			break
		}
	}
	fmt.Printf("%d bundles, %d paths and headers verified\n", bundles, count)
	return nil
}
