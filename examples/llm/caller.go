package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/weirhttp/weir/throttle"
)

// caller calls a chat API of the usual shape.
type caller struct {
	client *http.Client
	url    string
}

// answer is what matters here of a whole answer, or of one chunk of a stream.
type answer struct {
	Text  string `json:"text"`
	Usage *struct {
		TotalTokens int64 `json:"total_tokens"`
	} `json:"usage"`
}

// ask makes one call and settles what it used.
func (c *caller) ask(ctx context.Context, prompt string) (answer, error) {
	return c.call(ctx, prompt, false, func(resp *http.Response) (a answer, err error) {
		if a, err = whole(resp); err != nil {
			return a, err // the estimate stays spent: nobody knows better
		}
		return a, throttle.Settle(resp, throttle.Cost{"tokens": a.Usage.TotalTokens})
	})
}

// stream makes one call whose answer comes in pieces; the last of them says
// what all used.
func (c *caller) stream(ctx context.Context, prompt string) (answer, error) {
	return c.call(ctx, prompt, true, func(resp *http.Response) (a answer, err error) {
		if a, err = pieces(resp); err != nil {
			return a, err
		}
		return a, throttle.Settle(resp, throttle.Cost{"tokens": a.Usage.TotalTokens})
	})
}

// askOnly makes one call that costs what was estimated.
func (c *caller) askOnly(ctx context.Context, prompt string) (answer, error) {
	return c.call(ctx, prompt, false, whole)
}

// call sends prompt and reads the answer by read, before the body is closed.
func (c *caller) call(ctx context.Context, prompt string, stream bool, read func(*http.Response) (answer, error)) (answer, error) {
	body, err := json.Marshal(map[string]any{"prompt": prompt, "max_tokens": maxTokens, "stream": stream})
	if err != nil {
		return answer{}, err
	}
	// A token is about four bytes of English; the answer may take all it can.
	ctx = throttle.WithCost(ctx, throttle.Cost{"tokens": int64(len(prompt)/4 + maxTokens)})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return answer{}, fmt.Errorf("the model said %s", resp.Status)
	}
	return read(resp)
}

func whole(resp *http.Response) (answer, error) {
	var a answer
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return a, err
	}
	if a.Usage == nil {
		return a, errors.New("the answer does not say what it used")
	}
	return a, nil
}

// pieces reads server-sent events until the last.
func pieces(resp *http.Response) (all answer, err error) {
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			break
		}
		var a answer
		if err := json.Unmarshal([]byte(data), &a); err != nil {
			return all, err
		}
		all.Text += a.Text
		if a.Usage != nil {
			all.Usage = a.Usage
		}
	}
	if err := lines.Err(); err != nil {
		return all, err
	}
	if all.Usage == nil {
		return all, io.ErrUnexpectedEOF
	}
	return all, nil
}
