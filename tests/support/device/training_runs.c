/* training_runs.c - see training_runs.h. */
#include "tests/support/device/training_runs.h"

const struct training_run training_runs[MODEL_COUNT] = {
    {MODEL_MLP,
     {1, 10, 100, 300},
     {"dd60dd9c6c5405844fa32bb3934e5ee0207603af6343c73c259a2a6a65c4def6",
      "1fc41c472a37fb70decbe8b025dadec97f06c0ce482f06a75a5e834f15175d01",
      "8959411d2e10247f52397e58729d5dc56c222a767de13a709ec54c46a3026f84",
      "4522c1dca068fef9e76bdc71dcd2d06f88fcbade9a1c631b3ddc99438eb74052"}},
    {MODEL_CONVNET,
     {1, 10, 100},
     {"e6e821eabae13862aa310794c8068d960549ce22c4dd82585e4097cd43785b34",
      "db30b3ce46b826263e0b0c4c8fde482008fa160a263ddee68f52b239af416490",
      "f336afa2575a93cd708f090ce9621366045856d9838898387e9b4de28042c00c"}},
    {MODEL_GPT2,
     {1, 10, 100},
     {"40bb5df16b15ee828dd1a991b4473c70dd74d27864e21c230d027c6b1aa5d12d",
      "1d50d226bbafa2385b9b444695a44f0a18369f8777725e661c221a88da6b4b6c",
      "2a690614ba63b89d8b176e56d5ac2597720fea994880561ec053dc5081a6a39e"}},
    {MODEL_LLAMA,
     {1, 10, 100},
     {"7635e3679bfc7ae68876a376ea731c1077a23c22d424bf9109045d4c352c4966",
      "9f84b5e50cf6445c069150e2b11fa8f293d9364106cf910d92c2280ce7dd79ca",
      "4433048f97a92c6ce5eee83a7783239ccbd9c2d6de5c584dba0cac0a5da99940"}},
};
