package sdks

import (
	"bytes"
	"context"
	"fmt"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"time"

	azpolicy "github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	azruntime "github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicopt "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-github/v93/github"
	"github.com/openai/openai-go/v3"
	openaiopt "github.com/openai/openai-go/v3/option"
	"github.com/slack-go/slack"
	"github.com/stripe/stripe-go/v85"
	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"
)

func multipartOf(r *http.Request) (*multipart.Reader, error) {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	return multipart.NewReader(r.Body, params["boundary"]), nil
}

// The constructors below take whether the SDK retries by itself, as it does
// when nobody says otherwise, or is told not to in the way docs/sdks.md says.

func newGitHub(c *http.Client, _ bool) *github.Client {
	return gitHub(c, github.WithDisableRateLimitCheck()) // or it fails by itself what weir would let wait
}

func gitHub(c *http.Client, more ...github.ClientOptionsFunc) *github.Client {
	gh, err := github.NewClient(append([]github.ClientOptionsFunc{
		github.WithHTTPClient(c), github.WithEnterpriseURLs("http://api.github.test/", "http://uploads.github.test/"),
	}, more...)...)
	if err != nil {
		panic(err)
	}
	return gh
}

func newStripe(c *http.Client, own bool) *stripe.Client {
	config := &stripe.BackendConfig{HTTPClient: c, URL: stripe.String("http://api.stripe.test"), LeveledLogger: &stripe.LeveledLogger{}}
	if !own {
		config.MaxNetworkRetries = stripe.Int64(0)
	}
	return stripe.NewClient("sk_test_x", stripe.WithBackends(stripe.NewBackendsWithConfig(config)))
}

func newOpenAI(c *http.Client, own bool) openai.Client {
	opts := []openaiopt.RequestOption{openaiopt.WithHTTPClient(c), openaiopt.WithBaseURL("http://api.openai.test/v1/"), openaiopt.WithAPIKey("sk-x")}
	if !own {
		opts = append(opts, openaiopt.WithMaxRetries(0))
	}
	return openai.NewClient(opts...)
}

func newAnthropic(c *http.Client, own bool) anthropic.Client {
	opts := []anthropicopt.RequestOption{anthropicopt.WithoutEnvironmentDefaults(), anthropicopt.WithHTTPClient(c), anthropicopt.WithBaseURL("http://api.anthropic.test/"), anthropicopt.WithAPIKey("sk-x")}
	if !own {
		opts = append(opts, anthropicopt.WithMaxRetries(0))
	}
	return anthropic.NewClient(opts...)
}

func newS3(c *http.Client, own bool) *s3.Client {
	o := s3.Options{
		HTTPClient: c, BaseEndpoint: aws.String("http://s3.test"), UsePathStyle: true, Region: "eu-north-1",
		Credentials: credentials.NewStaticCredentialsProvider("AK", "SK", ""),
	}
	if !own {
		o.Retryer = aws.NopRetryer{}
	}
	return s3.New(o)
}

// newSlack: slack-go retries nothing until it is told to, and then 429 only.
func newSlack(c *http.Client, own bool) *slack.Client {
	opts := []slack.Option{slack.OptionHTTPClient(c), slack.OptionAPIURL("http://slack.test/api/")}
	if own {
		opts = append(opts, slack.OptionRetry(3))
	}
	return slack.New("xoxb-x", opts...)
}

func newAzure(c *http.Client, own bool) azruntime.Pipeline {
	o := &azpolicy.ClientOptions{Transport: c}
	if !own {
		o.Retry.MaxRetries = -1
	}
	return azruntime.NewPipeline("interop", "v0", azruntime.PipelineOptions{}, o)
}

func azureDo(ctx context.Context, p azruntime.Pipeline, method, path string, body []byte) error {
	req, err := azruntime.NewRequest(ctx, method, "http://management.azure.test"+path)
	if err != nil {
		return err
	}
	if body != nil {
		if err := req.SetBody(streaming.NopCloser(bytes.NewReader(body)), "application/octet-stream"); err != nil {
			return err
		}
	}
	resp, err := p.Do(req)
	if err != nil {
		return err
	}
	if !azruntime.HasStatusCode(resp, http.StatusOK) {
		return azruntime.NewResponseError(resp)
	}
	return resp.Body.Close()
}

// newGoogle: the generated clients retry only where a call's WithRetry, or an
// upload in chunks, asks for it.
func newGoogle(c *http.Client) (*storage.Service, error) {
	return storage.NewService(context.Background(), option.WithHTTPClient(c), option.WithEndpoint("http://storage.google.test/storage/v1/"))
}

// An sdk is one of them, and the dialect of its API.
type sdk struct {
	name string
	// state and deny are how the API speaks of its quota.
	state func(h http.Header, s standing)
	deny  func(w http.ResponseWriter, wait int, n int64) // nil: it has none
	body  string                                         // of a good answer to call
	call  func(c *http.Client, own bool) func(context.Context) error
	// How many of TestQuota's 60 calls may be refused: one in twenty where the
	// API states what is left, some per window where it must be found.
	mayRefuse int
	// What a server that only says 500 sees of one call: with both loops as
	// they come, with the SDK's off, and with ours off.
	both, ours, theirs int
}

func sdks() []sdk {
	return []sdk{
		{
			name: "go-github", mayRefuse: 3, both: 3, ours: 3, theirs: 1,
			state: func(h http.Header, s standing) {
				h.Set("X-RateLimit-Limit", fmt.Sprint(s.limit))
				h.Set("X-RateLimit-Remaining", fmt.Sprint(s.remaining))
				h.Set("X-RateLimit-Used", fmt.Sprint(s.limit-s.remaining))
				h.Set("X-RateLimit-Reset", fmt.Sprint(s.reset.Unix()))
				h.Set("X-RateLimit-Resource", "core")
			},
			deny: func(w http.ResponseWriter, _ int, _ int64) {
				refuse(w, 403, `{"message":"API rate limit exceeded for user ID 1.","documentation_url":"https://docs.github.com/rest"}`)
			},
			body: `{"login":"octocat"}`,
			call: func(c *http.Client, own bool) func(context.Context) error {
				gh := newGitHub(c, own)
				return func(ctx context.Context) error {
					u, _, err := gh.Users.Get(ctx, "octocat")
					return is(u.GetLogin(), "octocat", err)
				}
			},
		},
		{
			name: "stripe-go", mayRefuse: 40, both: 3, ours: 3, theirs: 1, // it repeats lost answers, not a 500
			deny: func(w http.ResponseWriter, _ int, _ int64) {
				w.Header().Set("Stripe-Rate-Limited-Reason", "global-rate")
				w.Header().Set("Stripe-Should-Retry", "true")
				refuse(w, 429, `{"error":{"message":"Too many requests.","type":"invalid_request_error","code":"rate_limit"}}`)
			},
			body: `{"id":"cus_1","object":"customer"}`,
			call: func(c *http.Client, own bool) func(context.Context) error {
				sc := newStripe(c, own)
				return func(ctx context.Context) error {
					cus, err := sc.V1Customers.Create(ctx, &stripe.CustomerCreateParams{Name: stripe.String("A")})
					if err != nil {
						return err
					}
					return is(cus.ID, "cus_1", nil)
				}
			},
		},
		{
			name: "openai-go", mayRefuse: 3, both: 9, ours: 3, theirs: 3,
			state: func(h http.Header, s standing) {
				h.Set("X-Ratelimit-Limit-Requests", fmt.Sprint(s.limit))
				h.Set("X-Ratelimit-Remaining-Requests", fmt.Sprint(s.remaining))
				h.Set("X-Ratelimit-Reset-Requests", time.Until(s.reset).String())
			},
			deny: func(w http.ResponseWriter, wait int, _ int64) {
				w.Header().Set("Retry-After", fmt.Sprint(wait))
				refuse(w, 429, `{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}`)
			},
			body: `{"id":"gpt","object":"model"}`,
			call: func(c *http.Client, own bool) func(context.Context) error {
				ai := newOpenAI(c, own)
				return func(ctx context.Context) error {
					m, err := ai.Models.Get(ctx, "gpt")
					if err != nil {
						return err
					}
					return is(m.ID, "gpt", nil)
				}
			},
		},
		{
			name: "anthropic-sdk-go", mayRefuse: 3, both: 9, ours: 3, theirs: 3,
			state: func(h http.Header, s standing) {
				h.Set("Anthropic-Ratelimit-Requests-Limit", fmt.Sprint(s.limit))
				h.Set("Anthropic-Ratelimit-Requests-Remaining", fmt.Sprint(s.remaining))
				h.Set("Anthropic-Ratelimit-Requests-Reset", s.reset.UTC().Format(time.RFC3339))
			},
			deny: func(w http.ResponseWriter, wait int, _ int64) {
				w.Header().Set("Retry-After", fmt.Sprint(wait))
				refuse(w, 429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`)
			},
			body: `{"id":"claude","type":"model","display_name":"C","created_at":"2025-01-01T00:00:00Z"}`,
			call: func(c *http.Client, own bool) func(context.Context) error {
				ai := newAnthropic(c, own)
				return func(ctx context.Context) error {
					m, err := ai.Models.Get(ctx, "claude", anthropic.ModelGetParams{})
					if err != nil {
						return err
					}
					return is(m.ID, "claude", nil)
				}
			},
		},
		{
			name: "aws-sdk-go-v2 S3", mayRefuse: 40, both: 9, ours: 3, theirs: 3,
			deny: func(w http.ResponseWriter, _ int, n int64) {
				refuse(w, 503, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message><RequestId>R`+fmt.Sprint(n)+`</RequestId></Error>`)
			},
			body: `<?xml version="1.0" encoding="UTF-8"?><ListAllMyBucketsResult><Buckets><Bucket><Name>b</Name></Bucket></Buckets></ListAllMyBucketsResult>`,
			call: func(c *http.Client, own bool) func(context.Context) error {
				client := newS3(c, own)
				return func(ctx context.Context) error {
					out, err := client.ListBuckets(ctx, &s3.ListBucketsInput{})
					if err != nil {
						return err
					}
					return is(aws.ToString(out.Buckets[0].Name), "b", nil)
				}
			},
		},
		{
			name: "slack-go", mayRefuse: 12, both: 1, ours: 1, theirs: 1, // every method is a POST
			deny: func(w http.ResponseWriter, wait int, _ int64) {
				w.Header().Set("Retry-After", fmt.Sprint(wait))
				refuse(w, 429, `{"ok":false,"error":"ratelimited"}`)
			},
			body: `{"ok":true,"user":{"id":"U1"}}`,
			call: func(c *http.Client, own bool) func(context.Context) error {
				api := newSlack(c, own)
				return func(ctx context.Context) error {
					u, err := api.GetUserInfoContext(ctx, "U1")
					if err != nil {
						return err
					}
					return is(u.ID, "U1", nil)
				}
			},
		},
		{
			name: "azcore", mayRefuse: 3, both: 12, ours: 3, theirs: 4,
			state: func(h http.Header, s standing) {
				h.Set("X-Ms-Ratelimit-Remaining-Subscription-Reads", fmt.Sprint(s.remaining))
			},
			deny: func(w http.ResponseWriter, wait int, _ int64) {
				w.Header().Set("Retry-After", fmt.Sprint(wait))
				refuse(w, 429, `{"error":{"code":"SubscriptionRequestsThrottled","message":"slow down"}}`)
			},
			body: `{}`,
			call: func(c *http.Client, own bool) func(context.Context) error {
				p := newAzure(c, own)
				return func(ctx context.Context) error { return azureDo(ctx, p, "GET", "/subscriptions/1", nil) }
			},
		},
		{
			name: "google-api-go-client", mayRefuse: 40, both: 3, ours: 3, theirs: 1,
			deny: func(w http.ResponseWriter, _ int, _ int64) {
				refuse(w, 403, `{"error":{"code":403,"message":"Rate Limit Exceeded","errors":[{"domain":"usageLimits","reason":"rateLimitExceeded","message":"Rate Limit Exceeded"}]}}`)
			},
			body: `{"kind":"storage#object","name":"o"}`,
			call: func(c *http.Client, _ bool) func(context.Context) error {
				svc, err := newGoogle(c)
				return func(ctx context.Context) error {
					if err != nil {
						return err
					}
					o, err := svc.Objects.Get("b", "o").Context(ctx).Do()
					if err != nil {
						return err
					}
					return is(o.Name, "o", nil)
				}
			},
		},
		gitLab(), minIO(), kubernetesAPI(), docker(),
	}
}

func is(got, want string, err error) error {
	if err == nil && got != want {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	return err
}

// temp returns a file that holds size bytes.
func temp(dir string, size int) (*os.File, error) {
	f, err := os.CreateTemp(dir, "*.bin")
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteString(text(size)); err != nil {
		return nil, err
	}
	_, err = f.Seek(0, 0)
	return f, err
}

// text is size bytes of which no two lines are the same.
func text(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.String()[:size]
}
